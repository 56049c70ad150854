# A pod starts after its first EgressIP was deleted, and its node's watch has not brought that.
0s assignable n1 yes
0s egressip a g 0
1s egressip b g 0
2s pod p n1 none
6s late n1 egressips 100s
8s forget a
20s pod q n1 g
24s pod r n1 g
