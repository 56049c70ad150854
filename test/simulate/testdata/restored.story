# etcd is restored from a backup of before pods' EgressIPs changed: all follow the history that goes on from there.
0s assignable n2 yes
0s assignable n3 yes
0s egressip a a 0
2s pod p n1 a
2s pod q n2 b
6s backup
8s egressip b b 0
8s egressip a a 1
14s restore
20s egressip b b 0
26s restore
30s forget a
31s egressip a a 0
