# A pod starts after an object was deleted, and its node lists all anew while the holder's watch stands still.
0s assignable n3 yes
0s egressip a a 0
0.5s egressip b a 0
10s late n1 egressips 400s
60s controller-kill n1 300s
60s controller-kill n2 300s
70s late n3 egressips 400s
75s forget a
80s pod p n1 a
200s show
