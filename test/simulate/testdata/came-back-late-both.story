# q's label comes back in one round of n2, which sees no end of a claim. n3 has followed the first half alone, and gives
# q b's address until it is in touch: where the promise ends.
0s assignable n3 yes
0s egressip a a 1
0s egressip b b 1
2s pod q n2 a
9.4s late n2 pods 30s
10.4s relabel q b
22.4s late n3 pods 400s
23s relabel q a
