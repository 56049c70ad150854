# etcd is restored while the holder hangs. It answers by versions of the history that has ended.
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod p n1 a
3s backup
4s relabel p b
5s relabel p a
6s relabel p b
7s relabel p a
8s relabel p b
9s relabel p a
10s relabel p b
12s relabel p a
16s cut n3 30s
17s restore
19s relabel p b
