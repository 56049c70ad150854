# A pod starts after an object was deleted, and its node lists all anew while the holder's watch stands still.
0s assignable n3 yes
0s traffic t x
0s egressip a a 0
0s narrow a t
0.5s egressip b a 0
10s late n1 egressiptraffics 400s
70s late n3 egressiptraffics 400s
75s forget-traffic t
80s pod p n1 a
189s show
200s show
