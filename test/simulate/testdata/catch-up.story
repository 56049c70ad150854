# Pods start while their node's watches do not bring what they are created under.
0s assignable n3 yes
0s egressip b b 0
2s pod q n2 b
4s late n1 egressips 60s
5s egressip a a 0
12s pod p n1 a
14s relabel q a
20s late n2 namespaces 60s
21s namespace y
24s egressip a b 0
30s namespace x
36s pod r n2 a
