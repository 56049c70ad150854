# A holder's agent hangs, and a watch of it is late when it goes on: it ends that watch three minutes after that.
0s assignable n3 yes
0s reuse 0s
0s egressip a a 0
0s egressip b b 1
2s pod p n1 a
2s pod q n1 a
6s controller-hang n2 3s
6.6s relabel q s
6.8s force q
7.2s kill n1 1s
7.2s relabel p b
11.2s pod p n2 a
11.6s hang n1 70s
14.6s restore
14.8s backup
14.8s forget a
16s relabel q a
16.4s relabel q b
16.6s kill n2 1s
16.6s relabel p t
20.8s relabel p b
21.8s assignable n1 yes
24.8s late n1 egressips 400s
24.8s assignable n1 no
32.8s relabel q a
33.2s hang n3 70s
36s restore
36s relabel u b
