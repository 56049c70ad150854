# a new pod whose holder's agent hangs: its EgressIP is not Ready
0s assignable n3 yes
0s egressip b b 0
2s pod o n1 b
6s hang n3 38s
8s pod p n2 b
