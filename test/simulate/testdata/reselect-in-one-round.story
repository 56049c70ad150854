# The agents of all nodes are hung while an EgressIP on links gets another selector and other addresses.
0s assignable n3 yes
0s egressip a a 0
2s pod p n1 a
2s pod q n2 a
2s pod r n3 a
8s hang n1 5s
8s hang n2 5s
8s hang n3 5s
9s egressip a b 1
