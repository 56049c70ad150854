# While the holder hangs, b gives the pod up, and the agent of its node starts again. Then b selects the pod again, for other destinations than the holder knows, and an EgressIPTraffic grows.
0s assignable n3 yes
0s egressip a a 0
0s egressip b a 1
0s traffic t x
0s traffic u y
0s narrow a t
0s narrow b u
2s pod p n1 a
10s hang n3 100s
13s narrow b
13.1s egressip b none 1
18s kill n1 4s
40s narrow a u
50s narrow a t
60s traffic t x y
