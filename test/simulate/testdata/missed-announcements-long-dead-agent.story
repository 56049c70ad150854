# A node with a dead agent is cut off while its address moves, and missed the announcements. Its agent stays dead for long.
0s assignable n3 yes
0s egressip b a 0
2s pod p n1 a
1s assignable n2 yes
16.8s kill n3 200s
18.8s isolate n3 6s
