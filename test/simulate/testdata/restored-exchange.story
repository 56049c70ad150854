0s assignable n3 yes
0s egressip a a 0
0s egressip b b 2
2s pod p n1 a
6.4s assignable n2 yes
20s backup
24.4s egressip a s 2 b
25.4s restore
