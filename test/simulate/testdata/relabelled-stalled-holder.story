# A pod goes from one EgressIP to another one on the same node, whose OVN stands still: its agent has not followed.
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod p n1 a
8s stall n3 20s
9s relabel p b
