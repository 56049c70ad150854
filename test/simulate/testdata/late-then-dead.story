# An agent dies while its watch is late: the two faults together keep it from following.
0s assignable n3 yes
0s assignable n2 yes
0s reuse 5s
0s egressip a a 0
0s egressip b b 0
0s egressip c c 0
0s service s s 0
0s egressservice s
0s service t t 0
0s egressservice t
2s pod p n3 t
2s pod q n3 b
17.4s part n1 n3 1.5s
17.4s kill n1 1.5s
17.6s choose s n1
18s part n3 n2 8.0s
18s late n3 egressips 8.0s
18s hang n1 8.0s
18.3s choose s n3
18.9s choose t n2
20.2s no-ingress t
21.1s no-ingress s
23s kill n3 40.0s
23s hang n3 40.0s
24.4s no-ingress t
26.1s choose s n1
26.7s relabel p c
