# A user removes the mark of a. n3 has heard of that, and not that the controller wrote it again: it drops packets of
# blue's pods until then. a is not Ready.
0s assignable n3 yes
0s network blue 1
0s egressip a a 0
4s pod blue/r n1 a
20s annotate egressips a mark -
20020ms late n3 egressips 100s
