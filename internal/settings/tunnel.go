package settings

import (
	"flag"
	"fmt"

	"github.com/egret-net/egret/internal/world"
)

// Tunnel is how packets go between nodes, as agents are told.
type Tunnel struct{ mtu, port int }

// TunnelFlags registers the flags. Call Into when they are parsed.
func TunnelFlags(f *flag.FlagSet) *Tunnel {
	t := &Tunnel{}
	f.IntVar(&t.mtu, "mtu", 0,
		"`bytes` of what pods may send at once, the same on all nodes; 0: 100 less than each node's uplink carries")
	f.IntVar(&t.port, "encap-port", world.GenevePort, "UDP `port` of tunnels (Geneve), the same on all nodes")
	return t
}

// The least that a link carries: IPv6's is RFC 8200's, IPv4's what every host receives at least (RFC 1122).
var least = [...]int{576, 1280}

// Into writes them into c, whose subnets are known.
func (t *Tunnel) Into(c *world.Config) error {
	for _, f := range c.Families() {
		if t.mtu != 0 && (t.mtu < least[f] || t.mtu > 65535) {
			return fmt.Errorf("--mtu %d: give %d to 65535 bytes for IP%s, or 0 for what the uplink carries", t.mtu,
				least[f], f)
		}
	}
	if t.port < 1 || t.port > 65535 {
		return fmt.Errorf("--encap-port %d: give a UDP port, such as %d", t.port, world.GenevePort)
	}
	c.MTU, c.EncapPort = t.mtu, t.port
	return nil
}
