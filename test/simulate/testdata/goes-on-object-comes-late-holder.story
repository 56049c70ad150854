# p goes on under EgressService s, on n3. Its namespace is none of EgressIPs any more, which n3's watch of namespaces has
# not brought. EgressIP a comes on n3, for p's labels, and keeps EgressServices from its pods. p never was a's.
limit: a holder with a late watch takes a pod for an object's that comes until the pod's node hears of that
0s assignable n3 yes
0s service s s 0
0s egressservice s
0s choose s n3
2s pod p n1 s
8s late n3 namespaces 20s
9s namespace y
14s egressip a s 0
14s annotate egressips a override never
