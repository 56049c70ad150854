# As local-links-node-gone, and OVN stands still meanwhile.
local gateway mode
0s assignable n3 yes
0s assignable n1 yes
0s egressip a a 2
0s traffic t x
0s narrow a t
2s pod p n3 a
9.8s stall n3 5s
9.95s reregister n3 8s
