# A pod comes under another EgressIP whose address is on the same node, and that node's agent is dead.
local gateway mode
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod p n1 a
6s kill n3 20s
10s relabel p b
