# a machine is registered anew under another name; the holder's watch of Nodes alone is late
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod q n2 a
5.9s late n3 nodes 40s
6s gone n2
8s machine 4
20s pod r n4 b
