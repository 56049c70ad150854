0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod p n1 a
2s pod o n1 b
6s backup
8s assignable n2 yes
9s assignable n3 no
20s assignable n3 yes
21s forget b
24s egressip b b 0
30s relabel p b
34s kill n3 120s
36s relabel p a
42s kill n1 6s
42s controller-kill n1 3s
42s controller-kill n2 3s
43s assignable n2 no
44s restore
