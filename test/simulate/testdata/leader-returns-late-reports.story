# A controller that was cut off leads again before its watch of reports goes on. Another one has given n2 an address
# meanwhile.
0s assignable n2 yes
0s egressip b b 1
2s pod p n2 a
2s pod q n1 b
6s cut n1 20s
9s egressip a a 0
13s hang n2 100s
14s controller-kill n2 100s
15s forget a
15.5s egressip b b 0 a
16s assignable n3 yes
25.9s controller-late n1 egressnodes 5s
