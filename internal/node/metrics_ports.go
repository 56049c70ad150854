package node

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/egret-net/egret/internal/metrics/collectors"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/conntrack"
	"github.com/egret-net/egret/internal/world"
)

// portsFreshness is how long the result of one look at the connections is told. ovs-vswitchd takes a second or more to
// list hundreds of thousands of them.
const portsFreshness = 30 * time.Second

var (
	usedPorts = prometheus.NewDesc("egret_node_snat_ports_used", "Ports of an egress IP that connections use to the "+
		"remote address, port and protocol that needs most of them.", []string{"ip"}, nil)
	portCapacity = prometheus.NewDesc("egret_node_snat_ports_capacity",
		"Ports that an egress IP has for each remote address, port and protocol.", []string{"ip"}, nil)
)

// ports counts the ports of held egress IPs that connections use. It reads the connections when somebody asks, and only
// while the node holds an address.
type ports struct {
	log  *slog.Logger
	read func(context.Context) ([]conntrack.Entry, error)
	held func() []netip.Addr

	mu       sync.Mutex
	lookedAt time.Time
	counts   map[netip.Addr]int
}

// countPorts registers the ports of addresses that a gateway router translates to.
func (m *Metrics) countPorts(router string, zones conntrack.Zones, of conntrack.Target, log *slog.Logger) {
	read := func(ctx context.Context) ([]conntrack.Entry, error) {
		zone, ok := zones.CTZone(ctx, plan.SNATZone(router))
		if !ok {
			return nil, nil // the router has not translated anything yet
		}
		return of.Dump(ctx, zone)
	}
	m.registerPorts(&ports{log: log, read: read, held: m.heldIPs})
}

func (m *Metrics) registerPorts(p *ports) {
	m.Registry.MustRegister(collectors.NewGauges(p.tellPorts, usedPorts, portCapacity))
}

func (p *ports) tellPorts(tell collectors.Tell) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := p.held()
	if len(held) > 0 && time.Since(p.lookedAt) >= portsFreshness {
		p.renewCounts()
	}
	for _, ip := range held {
		tell(usedPorts, float64(p.counts[ip]), ip.String())
		tell(portCapacity, conntrack.PortsPerRemote, ip.String())
	}
}

// renewCounts reads the connections. If that fails, the previous counts stay until the next look.
func (p *ports) renewCounts() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	entries, err := p.read(ctx)
	p.lookedAt = time.Now()
	if err != nil && len(entries) == 0 {
		p.log.Debug("could not count ports of egress IPs", "error", err)
		return
	}
	p.counts = conntrack.CountPorts(entries)
}

// primaryAddresses returns the held addresses of the primary network: the gateway router translates to these.
func primaryAddresses(r Report, h *world.Host) (out []netip.Addr) {
	for a := range r.Holding {
		if primary, _ := h.LinkFor(a.IP); primary {
			out = append(out, a.IP)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}
