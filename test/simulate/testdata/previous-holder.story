# An EgressIP gives up addresses while its holder is dead, and another one asks for them on another node.
0s assignable n3 yes
0s egressip a a 0
2s pod p n1 a
2s pod q n1 b
2s pod r n3 a
6s kill n3 60s
8s egressip a a 2
9s assignable n2 yes
9s assignable n3 no
10s egressip b b 0 a
