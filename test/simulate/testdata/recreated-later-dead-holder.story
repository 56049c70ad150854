# relabelled away, recreated under the name, relabelled back; the holder's agent is dead
0s assignable n3 yes
0s egressip a a 0
2s pod p n1 a
6s kill n3 60s
8s relabel p none
10s forget a
11s relabel p a
12s egressip a a 2
