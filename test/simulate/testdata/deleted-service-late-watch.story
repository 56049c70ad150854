# A pod starts after the EgressService that comes before its EgressIP was deleted, and its node's watch has not brought
# that.
0s assignable n1 yes
0s service s g 0
0s egressservice s
0s choose s n1
0s egressip b g 0
2s pod p n1 none
6s late n1 egressservices 100s
8s forget-egressservice s
20s pod q n1 g
