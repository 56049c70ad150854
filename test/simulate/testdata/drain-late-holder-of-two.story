# n3's watch stands still while n2 gets the addresses of two EgressIPs from it at once.
0s assignable n3 yes
0s egressip a a 0
0s egressip c c 0
2s pod p n1 a
2s pod q n3 a
2s pod o n2 c
5.9s late n3 egressips 60s
6s assignable n2 yes
7s assignable n3 no
