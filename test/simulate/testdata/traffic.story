# Two EgressIPs have a pod's packets to one destination each; then the destinations are exchanged, one goes, and one has all.
0s assignable n2 yes
0s assignable n3 yes
0s traffic t x
0s traffic u y
0s egressip a a 0
0s narrow a t
0s egressip b a 0
0s narrow b u
2s pod p n1 a
2s pod q n2 a
8s narrow a u
8s narrow b t
14s forget b
20s narrow a
26s relabel p b
