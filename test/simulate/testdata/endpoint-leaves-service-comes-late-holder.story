# The only endpoint leaves a Service, which gets an EgressService then. n2's watch of EndpointSlices is late.
0s assignable n2 yes
0s egressip b b 0
0s service s s 0
2s pod p n1 s
4s endpoint s p
6s relabel p b
12s late n2 endpointslices 100s
13s endpoint s
16s egressservice s
16.01s choose s n2
