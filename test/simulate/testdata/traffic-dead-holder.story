# Destinations go from one EgressIP of a pod to another, and the agent of the node that holds both is dead.
0s assignable n3 yes
0s traffic t x
0s traffic u y
0s egressip a a 0
0s narrow a t
0s egressip b a 0
0s narrow b u
2s pod p n1 a
6s kill n3 20s
10s traffic t
10.5s traffic u x y
16s traffic u x
16.5s traffic t y
