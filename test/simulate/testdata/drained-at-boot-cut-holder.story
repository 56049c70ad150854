0s assignable n3 yes
0s egressip a a 0
0s assignable n2 yes
2s pod p n1 a
6s cut n3 30s
9.6s kill n3 1s
10s assignable n3 no
