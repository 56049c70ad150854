# Somebody restores a holder's EgressNode of before it held anything: the report is written again, and pods are served.
0s assignable n3 yes
0s remember n3
1s egressip a a 0
2s pod p n1 a
2s pod q n3 a
8s overwrite n3
