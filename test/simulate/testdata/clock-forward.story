# The date of the leader's node steps forward, and back, in the middle of moves and of holders that are silent.
0s assignable n2 yes
0s egressip a a 0
0s egressip b b 0
2s pod p n1 a
2s pod q n3 b
6s clock n1 1h
6.2s assignable n3 yes
7s assignable n2 no
7.1s clock n1 1h
12s hang n3 10s
13s assignable n2 yes
14s assignable n3 no
14.1s clock n1 1h
30s clock n1 -3h
31s relabel p b
