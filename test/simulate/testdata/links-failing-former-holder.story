# n1 cannot write its Northbound, so that it removes nothing, while its address on a link moves to n2. n1 tries again up
# to 5 s after the Northbound can be written.
0s assignable n3 yes
0s egressip b b 2
2s pod p n1 b
6s assignable n1 yes
9.4s cut n3 70s
11.6s fail n1 north 70s
12.4s assignable n2 yes
