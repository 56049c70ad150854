# p has no claim, and goes; q gets its address, under b. The holder's watch of pods has not brought that when an EgressIP
# comes for labels as p had them. No claim to the address has ended.
0s assignable n3 yes
0s reuse 0s
0s egressip b b 0
2s pod r n1 b
2s pod p n1 none
8s late n3 pods 20s
9s delete p
10s pod q n1 b
14s egressip a none 0
