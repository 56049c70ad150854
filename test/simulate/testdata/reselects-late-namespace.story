# an EgressIP gets another selector and other addresses while the watch of namespaces is late
0s assignable n3 yes
0s egressip a a 2
0s egressip b b 2
0s assignable n2 yes
2s pod p n1 b
6s namespace y
6s egressip a b 0
