0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod p n1 a
2s pod o n1 b
6s late n1 egressips 60s
6s late n3 egressips 60s
8s egressip a none 0
9s egressip b a 0
20s pod q n1 a
