# the holder's watch of EgressIPs alone is late; two EgressIPs have exchanged their pods, and a new pod comes
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod p n1 a
2s pod q n2 b
5.9s late n3 egressips 25s
11s egressip a b 0
12s egressip b a 0
16s pod r n2 a
