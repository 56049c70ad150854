# After a boot a pod gets the address that another pod of the node, of another EgressIP, had before.
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod q n2 a
3s pod p n2 b
7s reboot n2 10s
