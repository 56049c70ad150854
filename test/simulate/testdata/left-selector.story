# Nodes stop being egress nodes: their reports leave the field selector of other agents' watches. Later they are again.
0s assignable n2 yes
0s egressip a a 0
0s service s s 0
0s egressservice s
0s choose s n3
2s pod p n1 a
2s pod q n1 s
8s assignable n2 no
8s choose s n2
9s assignable n3 yes
16s kill n3 20s
18s assignable n2 yes
18s choose s n1
20s assignable n3 no
30s relabel p none
34s relabel p a
40s assignable n2 no
42s assignable n2 yes
