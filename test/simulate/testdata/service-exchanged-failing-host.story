0s service s s 0
0s egressservice s
0s choose s n3
0s service t t 0
0s egressservice t
0s choose t n2
2s pod p n1 s
2s pod q n1 t
6s fail n3 host 8s
6.2s service s s 1
6.4s service t t 0 s
