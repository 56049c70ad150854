# A holder of addresses on links is cut off from the API server, and its agent starts again. The addresses are another
# node's by then: its agent hears that before it has reached the API server.
0s assignable n3 yes
0s egressip a a 2
2s pod p n1 a
0s assignable n2 yes
13.8s cut n3 70s
39.8s kill n3 1s
