# While a pod's node is cut off, an EgressIP selects another group, and later the pod comes into that group. The node then may learn of the pod first.
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod p n1 b
6s cut n1 10s
10s egressip a none 0
14.5s relabel p none
