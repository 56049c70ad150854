# The leader does not reach the node of a pod that comes under s meanwhile: Ready does not wait for it.
0s service s s 0
0s egressservice s
0s choose s n1
2s pod p n3 a
30.89s part n1 n3 45s
32s relabel p s
