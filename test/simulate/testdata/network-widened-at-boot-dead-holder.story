# blue/r has p's address in its own network, and the EgressIP that it had before is dead n3's.
# n1's agent may lead p to n3, as the former process did, and not r: n3 has r under b.
0s network blue 1
0s assignable n3 yes
0s traffic t x
0s egressip a a 0
0s narrow a t
0s egressip b b 0
2s pod p n1 a
2s pod blue/r n1 b
10s kill n3 60s
12s kill n1 3s
13s relabel blue/r a
