# A node that holds an EgressIP's addresses is deleted, and returns under another name with its addresses.
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod p n1 a
2s pod q n3 b
8s rename n3 10s
25s pod r n3 b
30s rename n3 1s
45s assignable n2 yes
50s assignable n3 no
