# A second fault ends before the first: the node's OVN stands still until the end of both.
0s assignable n3 yes
0s egressip a a 0
0s assignable n2 yes
2s pod p n1 none
6.4s stall n2 70s
9.2s isolate n2 3s
18.6s stall n2 1s
