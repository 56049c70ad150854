# The same on links: the holder's agent is dead, and an EgressIPTraffic grows.
0s assignable n3 yes
0s egressip a a 2
0s egressip b a 3
0s traffic t x
0s traffic u y
0s narrow a t
0s narrow b u
2s pod p n1 a
10s kill n3 100s
13s narrow b
13.2s egressip b none 3
18s kill n1 8s
21s traffic t x y
