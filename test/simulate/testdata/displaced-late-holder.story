# An EgressIP comes that forbids EgressServices; the holder's watch of EgressIPs is late.
0s assignable n3 yes
0s egressip a g 0
0s service s g 0
0s egressservice s
0s choose s n3
2s pod p n1 g
2s pod o n2 g
8s late n3 egressips 60s
10s egressip b g 0
10s annotate egressips b override never
16s pod q n2 g
16s pod r n1 g
