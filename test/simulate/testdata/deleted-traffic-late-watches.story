# The same of the EgressIPTraffic by which the first EgressIP would serve the pod.
0s assignable n3 yes
0s traffic t x
0s egressip a a 0
0s narrow a t
0s egressip b a 0
2s pod p n1 none
6s late n1 egressiptraffics 100s
6s late n3 egressiptraffics 100s
8s forget-traffic t
20s pod q n1 a
