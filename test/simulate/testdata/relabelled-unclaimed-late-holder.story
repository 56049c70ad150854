# p is let go by a, which has no address, and goes on under b. The holder's watch of pods has not brought that when a,
# which is the older one, gets an address.
0s assignable n3 yes
0s reuse 0s
0s egressip b b 0
2s pod r n1 b
2s pod p n1 none
8s late n3 pods 20s
9s relabel p b
14s egressip a none 0
