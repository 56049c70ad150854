# A controller that was cut off leads again before its watch of Nodes goes on. A new machine n4 has got s's address meanwhile and hangs.
0s service s s 0
0s service t t 1
0.1s egressservice s
0.11s choose s n4
0.1s egressservice t
0.11s choose t n2
2s pod q n1 t
7s cut n1 30s
8s machine 4
20s pod p n4 s
30s hang n4 100s
32s controller-kill n2 100s
33s forget-egressservice s
33s forget-service s
34s service t t 0 s
36.9s controller-late n1 nodes 20s
