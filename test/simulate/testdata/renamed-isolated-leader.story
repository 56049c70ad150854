# The only controller is on a node that reaches the API server and no other node: it says nothing of nodes that it does not reach.
0s service s s 0
0s egressservice s
2s pod p n3 s
6s cut n2 70s
6.2s rename n1 10s
11.6s isolate n1 30s
