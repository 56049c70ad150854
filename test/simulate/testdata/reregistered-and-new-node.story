# A Node is deleted and registered again, and a new node joins meanwhile: it does not get the subnets.
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod p n1 a
10s reregister n1 5s
11s machine 4
18s pod w n4 b
