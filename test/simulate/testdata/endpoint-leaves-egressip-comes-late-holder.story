# p leaves a Service's EndpointSlice; then the EgressService comes; then an EgressIP for p. n2's watch of EndpointSlices is late.
0s assignable n2 yes
0s egressip c c 0
0s service s s 0
2s pod q n1 c
2s pod p n1 b
4s endpoint s p
7s relabel q a
8s relabel q c
12s late n2 endpointslices 100s
13s endpoint s
16s egressservice s
16.01s choose s n2
20s egressip b b 0
