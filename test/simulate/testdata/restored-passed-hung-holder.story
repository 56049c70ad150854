# The holder hangs over a restore of etcd, and the new history gets as far as the holder's watches were: they go on in
# it. a and b exchange their destinations in the part that the restore takes back.
0s assignable n3 yes
0s egressip a a 0
0s egressip b a 0
0s traffic t x
0s traffic u y
0s narrow a t
0s narrow b u
2s pod q n1 a
6s backup
10s traffic t y
10s traffic u x
22s hang n3 30s
24s restore
27s writes 500
