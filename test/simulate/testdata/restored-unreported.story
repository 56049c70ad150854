1.2s backup in which an address is assigned and its holder has yet to report that it holds it.
0s assignable n3 yes
1s egressip a a 0
1.2s backup
3s pod p n1 a
10s restore
