# n3 answers that it knows of r and of a, which has no mark yet. It learns of the mark late, and drops packets of blue's
# pods until then. a is not Ready.
0s assignable n3 yes
0s network blue 1
2s pod blue/r n1 a
10s egressip a a 0
10.2s late n3 egressips 100s
