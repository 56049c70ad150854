0s service s s 0
0s egressservice s
0s choose s n3
2s pod p n1 s
8s late n1 services 60s
8s late n3 services 60s
9s service s t 1
20s show
40s show
