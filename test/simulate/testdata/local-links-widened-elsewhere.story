# As local-links-widened-in-one-round, and the address moves from n2 to n3 before: n2 wants neither the set of pods nor
# the rules that match it, and still has both when y comes into the set of destinations.
local gateway mode
0s assignable n2 yes
0s egressip a a 2
0s traffic t x
0s traffic u y
0s narrow a t
2s pod p n2 a
6.8s late n2 egressips 10s
7.5s assignable n3 yes
8s assignable n2 no
10s egressip a none 2
14.6s narrow a t u
