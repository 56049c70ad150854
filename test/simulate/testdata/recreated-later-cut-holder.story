# the same, but the pod's label goes and comes around that; and the holder is only cut off from the API server
0s assignable n3 yes
0s egressip a a 0
2s pod p n1 a
6s cut n3 90s
8s relabel p none
10s forget a
14s relabel p a
18s egressip a a 2
