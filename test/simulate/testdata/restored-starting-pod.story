# The restore takes back that a selects b's pods. q starts on n3, which has yet to list EgressIPs again: what CNI ADD
# reads of them counts as older there.
0s assignable n3 yes
12.2s backup
18.8s egressip a b 0
19.6s late n3 egressips 15s
19.7s restore
22.3s pod q n3 b
