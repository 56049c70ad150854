# An EgressIP is deleted, made again and deleted while the pods' node is late with EgressIPs: pods start meanwhile.
0s assignable n1 yes
0s egressip a g 0
1s egressip b g 0
2s pod p n1 none
6s late n1 egressips 100s
8s forget a
9s egressip a g 0
10s forget a
20s pod q n1 g
30s egressip a g 0
36s pod r n1 g
40s forget a
46s pod u n1 g
