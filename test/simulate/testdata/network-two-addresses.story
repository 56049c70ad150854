# An EgressIP with two IPv4 addresses on n3 serves a pod of the default network and one of blue, on n3 itself and from n1.
0s assignable n3 yes
0s egressip a a 1
0s network blue 1
2s pod p n3 a
2s pod blue/r n1 a
