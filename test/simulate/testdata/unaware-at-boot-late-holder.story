# Pod q comes under a, and its holder does not see that: it drops the pod's packets, and a is not Ready. Then the agent of the pod's node starts again.
0s assignable n3 yes
0s egressip a a 0
2s pod p n1 a
2s pod q n1 none
10s late n3 pods 150s
13s relabel q a
30s kill n1 3s
