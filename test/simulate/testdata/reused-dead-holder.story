# A new pod gets the address of a former pod of another EgressIP, and the agent of the node that holds both is dead.
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod p n1 a
6s kill n3 20s
8s delete p
15s pod q n1 b
