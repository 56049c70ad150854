# A controller that was cut off leads again before its watch of Nodes goes on. n3 has rebooted meanwhile, translates to s's address again and hangs.
0s service s s 0
0s service t t 1
0.1s egressservice s
0.11s choose s n3
0.1s egressservice t
0.11s choose t n2
2s pod p n3 s
2s pod q n1 t
7s cut n1 30s
8s reboot n3 3s
30s hang n3 100s
32s controller-kill n2 100s
33s forget-egressservice s
33s forget-service s
34s service t t 0 s
36.9s controller-late n1 nodes 20s
