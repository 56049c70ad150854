# Pods of blue, red and the default network have one address on n1, each in its own network, and n3 holds their egress
# IPs. blue/r goes and blue/v gets its address under another EgressIP while n3's agent is dead. That concerns blue alone.
0s assignable n3 yes
0s reuse 0s
0s egressip a a 0
0s egressip b b 0
0s network blue 1
0s network red 2
2s pod p n1 b
2s pod blue/r n1 a
2s pod red/u n1 a
8s kill n3 30s
10s delete blue/r
12s pod blue/v n1 b
