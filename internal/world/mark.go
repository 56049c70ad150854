package world

// FirstMark and LastMark are the marks that packets of EgressIPs can have, as in OVN-Kubernetes.
const (
	FirstMark = 50000
	LastMark  = 55000
)
