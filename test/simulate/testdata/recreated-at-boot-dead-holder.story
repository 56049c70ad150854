# a pod's EgressIP is deleted while its node's agent is down, and made anew later; the holder's agent is dead
0s assignable n3 yes
0s egressip a a 0
2s pod p n1 a
6s kill n3 60s
7s kill n1 4s
8s forget a
30s egressip a a 2
