# A holder has answered that it has followed; its agent, then its machine, start again, and their watch of pods is late.
# The first list of a new process is what the API has then: one that knew less would translate as before the answer.
0s assignable n3 yes
0s egressip a a 0
0s egressip b b 0
2s pod p n1 a
2s pod q n2 b
6s relabel p b
8s kill n3 1s
9.05s late n3 pods 20s
12s relabel q a
40s relabel p a
42s reboot n3 5s
47.05s late n3 pods 20s
50s relabel q b
52s pod r n1 b
