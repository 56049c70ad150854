# An address moves to another node and back, and the node that has it meanwhile is cut off by then.
0s assignable n3 yes
0s egressip b b 1
2s pod p n1 b
9.8s assignable n2 yes
10.4s assignable n3 no
18.8s cut n2 30s
20.2s assignable n3 yes
22.6s assignable n2 no
