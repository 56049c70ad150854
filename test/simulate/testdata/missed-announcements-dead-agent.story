# An EgressIP is assigned as its node's agent dies, and that node is cut off while the address moves. It returns before its agent does, and missed the announcements.
0s assignable n3 yes
0s assignable n2 yes
0.5s egressip b a 1
2s pod p n1 a
16.8s kill n3 70s
18.8s isolate n3 6s
