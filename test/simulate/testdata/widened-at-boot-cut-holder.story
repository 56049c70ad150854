# A pod has two EgressIPs on one holder, each for its own destinations. The holder is cut off, and b gives the pod up. While the agent of its node is dead, a gets the destinations of b.
0s assignable n3 yes
0s egressip a a 0
0s egressip b a 1
0s traffic t x
0s traffic u y
0s narrow a t
0s narrow b u
2s pod p n1 a
10s cut n3 100s
13s egressip b none 1
18s kill n1 8s
21s narrow a t u
