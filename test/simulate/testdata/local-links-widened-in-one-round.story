# In local gateway mode the host marks packets by the sets of pods and of destinations. n2 learns in one round that a no
# longer selects p, and that a has destination y, too. p must not be in the one set when y comes into the other.
local gateway mode
0s assignable n2 yes
0s egressip a a 2
0s traffic t x
0s traffic u y
0s narrow a t
2s pod p n2 a
6.8s late n2 egressips 10s
10s egressip a none 2
14.6s narrow a t u
