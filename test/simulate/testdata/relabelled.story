# A pod comes under another EgressIP, and back.
0s assignable n2 yes
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod p n1 a
2s pod q n2 a
2s pod r n3 b
8s relabel p b
8s relabel q b
8s relabel r a
14s relabel p a
14s relabel q a
14s relabel r b
