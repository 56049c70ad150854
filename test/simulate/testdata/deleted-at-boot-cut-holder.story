# The same with a boot of the pod's node, in which another pod gets the address.
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod q n2 a
3s pod p n2 b
6s reboot n2 10s
7s cut n3 70s
8s force q
