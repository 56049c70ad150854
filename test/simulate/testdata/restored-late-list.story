# After a restore of etcd n2 knows that its versions of pods are of a history that has ended, and has no list of them
# yet. It must not say that it has followed the new label by them.
0s assignable n2 yes
0s egressip a a 0
0s egressip b b 0
2s pod p n1 a
14.1s backup
17.3s late n2 pods 70.0s
20.4s restore
24.7s relabel p b
