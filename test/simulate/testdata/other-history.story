# A holder that is cut off from the API server has seen a history that a restore has ended. Its versions are newer than those of the new history.
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod p n1 a
2s pod o n1 b
6s backup
6.2s relabel o b
6.2s egressip a a 0
6.2s egressip b b 0
6.2s namespace x
9s cut n3 60s
10s restore
14s relabel p b
