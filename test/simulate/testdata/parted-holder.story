# n1 and the holder do not receive each other, and the leading controller receives both. What q sends is dropped, for n3
# cannot be asked. a has no other pod, and must not be Ready.
0s controller-kill n1 200s
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod p n1 b
2s pod q n1 b
19s part n3 n1 70s
27.6s relabel q a
