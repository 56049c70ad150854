# The Node of an address's holder goes, and comes again. The holder's own pod is dropped from the first moment on: its
# address is on a link, it has not all destinations, and OVN leads the pod to the host for a while still.
local gateway mode
0s assignable n3 yes
0s assignable n1 yes
0s egressip a a 2
0s traffic t x
0s narrow a t
2s pod p n3 a
9.95s reregister n3 8s
