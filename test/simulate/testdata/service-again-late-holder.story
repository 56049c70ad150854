# A Service with an EgressService goes, its EndpointSlice after it, and the Service comes again. n2's watch of EndpointSlices is late.
0s assignable n2 yes
0s egressip b b 0
0s service s none 0
2s pod p n1 b
4s endpoint s p
6s egressservice s
6.01s choose s n2
12s forget-service s
18s late n2 endpointslices 100s
19s endpoint s
22s service s none 0
