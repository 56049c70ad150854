# Two Nodes are deleted and registered again in another order, and their machines and pods go on. Each gets its subnets
# back: else p and w had one address, and p left by the EgressIP of w.
0s assignable n3 yes
0s reuse 0s
0s egressip a a 0
0s egressip b b 0
2s pod p n1 a
2s pod q n2 b
10s reregister n1 2s
10.1s reregister n2 1s
14s delete q
15s pod w n2 b
