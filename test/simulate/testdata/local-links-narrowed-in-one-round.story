# The reverse of local-links-widened-in-one-round: n2 learns in one round that a selects p, and that a no longer has y.
local gateway mode
0s assignable n2 yes
0s egressip a a 2
0s traffic t x
0s traffic u y
0s narrow a t u
2s pod p n2 b
6.8s late n2 egressips 10s
10s narrow a t
14.6s egressip a b 2
