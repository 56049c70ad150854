# A controller that was cut off leads again before its watch of Nodes goes on. n3 was made assignable meanwhile, and hosts EgressIP a, in force.
2s pod p n2 a
7s cut n1 30s
10s assignable n3 yes
11s egressip a a 0
32s controller-kill n2 100s
36.9s controller-late n1 nodes 20s
