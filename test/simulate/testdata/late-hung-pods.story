# The same of the agent of the pods' node.
0s assignable n3 yes
0s reuse 0s
0s egressip a a 0
0s egressip b b 0
0s service s s 0
0s egressservice s
0s service t t 0
0s egressservice t
2s pod p n2 a
2s pod q n1 a
6.2s delete r
6.4s assignable n2 yes
6.6s late n1 egressips 70s
6.6s assignable n2 no
7.4s isolate n3 70s
7.6s relabel p b
7.8s controller-hang n2 10s
7.8s relabel p t
8.6s relabel q t
8.8s relabel p s
9s rename n2 30s
9s namespace x
9s relabel r a
9.2s hang n1 70s
9.2s relabel r b
9.4s rename n3 1s
9.4s relabel p t
30.6s assignable n2 yes
30.8s late n1 egressservices 400s
30.8s assignable n3 no
