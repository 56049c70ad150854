# As service-again-late-holder, and p has no claim when the Service comes again: an EgressIP comes for it then.
0s assignable n2 yes
0s egressip c c 0
0s service s none 0
2s pod p n1 b
2s pod q n1 c
4s endpoint s p
6s egressservice s
6.01s choose s n2
12s forget-service s
18s late n2 endpointslices 100s
19s endpoint s
22s service s none 0
28s egressip b b 0
