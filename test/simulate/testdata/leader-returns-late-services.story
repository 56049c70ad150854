# A controller that was cut off leads again before its watch of Services goes on. Service u and its EgressService came meanwhile, on n3, in force.
0s service s s 0
0.1s egressservice s
0.11s choose s n3
2s pod p n3 s
2s pod q n2 u
7s cut n1 30s
10s service u u 1
11s egressservice u
11.01s choose u n3
32s controller-kill n2 100s
36.9s controller-late n1 services 20s
