# The host does not hear that an EgressService is out of force: its Service has lost its addresses. A pod that comes is the
# EgressIP's.
0s assignable n3 yes
0s egressip a g 0
0s service s g 0
0s egressservice s
0s choose s n3
2s pod p n1 g
2s pod o n2 g
8s late n3 egressservices 60s
10s no-ingress s
30s pod q n2 g
30s pod r n1 g
