package world

import "fmt"

// overhead is what Geneve over IPv6 with OVN's options adds, rounded up; OVN-Kubernetes' choice.
const overhead = 100

// geneve is what a tunnel adds to a packet, by the family of its ends: their IP header, UDP's, Geneve's with OVN's one
// option, and the frame's inside.
var geneve = [...]int{20 + 8 + 16 + 14, 40 + 8 + 16 + 14}

// PodMTU returns the largest size in bytes of pods' packets that fits into a tunnel over the uplink: the value of
// --mtu, as far as the uplink carries it. With the uplink's own MTU a TCP stream stalls.
func (c *Config) PodMTU(h *Host) int {
	if c.MTU == 0 {
		return h.MTU - overhead
	}
	return min(c.MTU, h.tunnelMTU())
}

// tunnelMTU is all that a tunnel over the uplink carries. OVN's tunnels end at the first primary address.
func (h *Host) tunnelMTU() int {
	f := V6
	if len(h.Primary) > 0 {
		f = FamilyOf(h.Primary[0].Addr())
	}
	return h.MTU - geneve[f]
}

// TooSmall says of the uplink, in a sentence with what to do, that it does not carry what --mtu asks for.
func (c *Config) TooSmall(h *Host) []string {
	if c.MTU <= h.tunnelMTU() {
		return nil
	}
	return []string{fmt.Sprintf("the uplink's MTU %d carries %d bytes of pods, and --mtu asks for %d: pods here have "+
		"links of %d, and what larger ones of other nodes send them is lost; give the uplink an MTU of %d, or all nodes "+
		"--mtu %d", h.MTU, h.tunnelMTU(), c.MTU, h.tunnelMTU(), c.MTU+h.MTU-h.tunnelMTU(), h.tunnelMTU())}
}
