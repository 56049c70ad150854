# As goes-on-object-comes-late-holder, but n3 has a's addresses already when a gets p's labels as its selector.
limit: a holder with a late watch takes a pod for an object's that changes until the pod's node hears of that
0s assignable n3 yes
0s service s s 0
0s egressservice s
0s choose s n3
0s egressip a z 0
0s annotate egressips a override never
2s pod p n1 s
8s late n3 namespaces 20s
9s namespace y
14s egressip a s 0
