# A pod starts after its first EgressIP was deleted, and the watches of its node and of the holder have not brought that.
0s assignable n3 yes
0s egressip a g 0
1s egressip b g 0
2s pod p n1 none
6s late n1 egressips 100s
6s late n3 egressips 100s
8s forget a
20s pod q n1 g
