# The agents of all nodes are hung while a Service gets another selector and other ingress addresses.
0s service s s 0
0s egressservice s
2s pod p n1 s
2s pod q n2 s
2s pod r n3 s
8s hang n1 5s
8s hang n2 5s
8s hang n3 5s
9s service s t 1
