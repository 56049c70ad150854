0s service s s 0
0s egressservice s
0s choose s n3
2s pod p n1 s
6s late n1 egressservices 60s
7s choose s n2
