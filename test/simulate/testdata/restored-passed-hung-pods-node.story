# The same on the node of the pod, which is the holder, too: the restore takes back that the namespace has another label.
0s assignable n3 yes
0s egressip a a 0
2s pod p n3 a
2s pod q n1 a
6s backup
10s namespace y
22s hang n3 30s
24s restore
27s writes 500
