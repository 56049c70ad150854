# The holder is cut off from the API server before a pod is deleted, and the agent of the pod's node starts after: it never sees that pod.
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod q n2 a
3s pod p n2 b
6s kill n2 6s
7s cut n3 70s
8s force q
20s pod r n2 b
