# While a node is down a pod of it is deleted; after the boot another, of another EgressIP, gets its address, and the
# holder's agent is dead: a node that has just begun leads nothing there until the holder has answered.
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod q n2 a
3s pod p n2 b
6s kill n3 30s
7s reboot n2 10s
8s force q
