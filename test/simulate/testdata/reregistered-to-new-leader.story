# Two Nodes are deleted, and registered again with a leader that does not know what they had: each gets the subnets of the
# other. p keeps an address that is w's by then, and sends nothing outside.
0s assignable n3 yes
0s reuse 0s
0s egressip a a 0
0s egressip b b 0
2s pod p n1 a
2s pod q n2 b
10s reregister n1 5s
10s reregister n2 4s
11s controller-kill n1 1s
11s controller-kill n2 1s
18s delete q
19s pod w n2 b
25s delete w
40s delete p
