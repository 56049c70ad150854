# The holder's watch of pods stands still for good: what it has not seen it drops, until it lists pods again.
0s assignable n3 yes
0s egressip a a 0
2s pod p n1 a
6s late n3 pods 600s
10s pod q n2 a
