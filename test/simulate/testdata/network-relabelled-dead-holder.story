# blue/r comes under another EgressIP whose address is on the same node, and that node's agent is dead: n3 has r under a.
# p has r's address in the default network and stays under a. Neither pod is the other's rival.
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
0s network blue 1
2s pod p n1 a
2s pod blue/r n1 a
6s kill n3 20s
10s relabel blue/r b
