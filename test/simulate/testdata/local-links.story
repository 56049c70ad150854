# The addresses of two EgressIPs are on links, and pods go from the one to the other; then to one on the nodes' network.
local gateway mode
0s assignable n2 yes
0s assignable n3 yes
0s egressip a a 2
0s egressip b b 2
0s egressip c c 0
2s pod p n1 a
2s pod q n2 a
2s pod r n3 b
8s relabel p b
8s relabel q b
8s relabel r a
14s relabel p c
14s relabel q c
14s relabel r c
20s egressip c c 2
