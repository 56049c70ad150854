# An object is deleted, made again and deleted again, and the watch of a starting pod's node brings the first end alone.
0s assignable n3 yes
0s egressip a g 0
2s pod p n1 none
6s late n1 egressips 24s
7s forget a
8s egressip a g 0
12s egressip b g 1
16s late n3 egressips 100s
17s late n1 egressips 100s
17.2s forget a
20s pod q n1 g
29s show
33s show
60s show
