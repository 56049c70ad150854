# The pod's node hangs from before a backup until after its restore, and its Lease is that of the backup. The new history
# has got as far as its watches were. Nothing tells it from the former one: the node lists in this simulation.
0s assignable n3 yes
0s egressip a a 0
2s pod q n1 none
8s hang n1 40s
10s backup
13s restore
15s relabel q a
17s writes 500
