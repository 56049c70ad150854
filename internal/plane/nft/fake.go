package nft

import (
	"slices"

	"sigs.k8s.io/knftables"
)

// Fake is the plane on two tables in memory. The tables can be read, and meddled with, as knftables.Fake.
type Fake struct {
	*Plane
	INet, NetDev *knftables.Fake
}

// NewFake makes a fake on which every link exists but those named.
func NewFake(missing ...string) *Fake {
	inet := knftables.NewFake(knftables.InetFamily, TableName)
	netdev := knftables.NewFake(knftables.NetDevFamily, TableName)
	device := func(name string) (int, bool) { return 1, !slices.Contains(missing, name) }
	return &Fake{New(inet, netdev, device), inet, netdev}
}
