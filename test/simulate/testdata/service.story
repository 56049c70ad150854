# Services get other ingress addresses, exchange their pods, and go; their hosts are rebooted.
0s service s s 0
0s egressservice s
0s service t t 0
0s egressservice t
0s assignable n3 yes
0s egressip a a 0
2s pod p n1 s
2s pod q n2 t
2s pod r n3 a
8s service s s 1
12s service s t 0
12s service t s 1
18s reboot n1 10s
26s relabel r s
40s forget-egressservice s
44s forget-service t
48s service t s 0
