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

// least is how many bytes a link has to carry, by world.Family.
var least = [...]struct {
	bytes int
	why   string
}{{576, "each host can receive 576 (RFC 1122)"}, {1280, "each link carries 1280 (RFC 8200)"}}

// Into writes them into c, whose subnets are known.
func (t *Tunnel) Into(c *world.Config) error {
	for _, f := range c.Families() {
		if l := least[f]; t.mtu != 0 && (t.mtu < l.bytes || t.mtu > 65535) {
			return fmt.Errorf("--mtu %d: give %d to 65535 bytes for IP%s, of which %s, or 0 for what the uplink carries",
				t.mtu, l.bytes, f, l.why)
		}
	}
	if t.port < 1 || t.port > 65535 {
		return fmt.Errorf("--encap-port %d: give a UDP port, such as %d", t.port, world.GenevePort)
	}
	c.MTU, c.EncapPort = t.mtu, t.port
	return nil
}
