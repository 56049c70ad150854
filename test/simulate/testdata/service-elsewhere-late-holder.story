# p goes on under b. A Service lets it go, and gets an EgressService with a host on another node. The holder of b has a
# late watch of Services: it takes p for the EgressService's, and drops what p sends. Nobody may say that b is Ready.
0s assignable n3 yes
0s egressip b b 0
0s service s b 0
2s pod p n1 b
8s late n3 services 100s
9s service s a 0
14s egressservice s
14.2s choose s n2
