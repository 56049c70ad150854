# Pods go from an EgressService to an EgressIP and back, and the agent of the node that is the host of both is dead.
local gateway mode
0s assignable n1 yes
0s service s s 0
0s egressservice s
0s egressip a a 0
2s pod p n2 s
2s pod q n3 a
2s pod r n1 s
6s kill n1 20s
10s relabel p a
10s relabel q s
10s relabel r a
