# r starts on n2 after a restore that no watch of its node has found out yet. What CNI ADD reads is older than what the
# node has seen.
0s assignable n3 yes
0s egressip b b 0
5.5s backup
16.2s namespace y
16.2s pod r n2 b
16.4s restore
