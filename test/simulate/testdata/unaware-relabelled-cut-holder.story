# a pod comes under an EgressIP whose holder is cut off: the EgressIP is not Ready
0s assignable n3 yes
0s egressip b b 0
2s pod o n2 b
2s pod p n2 none
6s cut n3 38s
8s relabel p b
