# The watch of EgressIPs stands still for good on the pods' node: it misses what is deleted, until it lists them again.
0s assignable n1 yes
0s egressip a a 0
0s egressip b b 0
2s pod p n1 a
6s late n1 egressips 600s
8s forget a
200s pod q n1 a
210s relabel p b
