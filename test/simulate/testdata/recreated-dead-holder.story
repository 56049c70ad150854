# An EgressIP is made anew under its name with another address, and the agent of the node that holds the former is dead.
0s assignable n3 yes
0s egressip a a 0
2s pod p n1 a
6s kill n3 60s
8s forget a
12s egressip a a 2
