# The watch of pods stands still for good on the pods' node: it leads a relabelled pod as before, and the holder drops.
0s assignable n3 yes
0s egressip a a 0
1s assignable n2 yes
1.5s egressip b b 0
2s pod p n1 a
2s pod q n1 b
6s late n1 pods 600s
8s relabel p b
