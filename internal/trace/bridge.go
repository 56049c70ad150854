package trace

import (
	"fmt"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// untaken is why a packet ends in a table without a flow for it.
const untaken = "no flow of the gateway bridge takes it"

// frame is the hardware addresses of a packet on the gateway bridge, "" where the walk does not know them.
type frame struct{ src, dst string }

// enter is a packet that comes to a node over the uplink.
func (w walker) enter() []End {
	w.mark, w.frame.dst = 0, w.zone().uplinkMAC()
	return w.bridge(w.zone().uplink)
}

// uplinkMAC is the hardware address that the host shares with its gateway router.
func (z *zone) uplinkMAC() string { return z.macs[z.names.GatewayToExternal(z.node)] }

// bridge is the gateway bridge, for packets from OVN, from the host, or from outside.
func (w walker) bridge(port string) []End {
	w.port, w.tracked, w.reg0, w.reg1 = port, false, 0, 0
	if port != w.zone().uplink {
		w.frame = frame{}
	}
	if ends := w.table(0); len(ends) > 0 {
		return ends
	}
	return w.end(Dropped, untaken)
}

// table is the ends of a packet in a table; none where no flow takes it, which sends it nowhere.
func (w walker) table(number int) []End {
	if w.hops++; w.hops > maxHops {
		return w.end(Dropped, "a loop")
	}
	for _, f := range w.zone().flows[number] {
		if f.holds(w) {
			ends := w.step("%s actions=%s", f.name(number), f.text).act(f.actions, f)
			if len(ends) == 0 {
				return w.step("%s actions=%s", f.name(number), f.text).end(Dropped, "%s", f.name(number))
			}
			return ends
		}
	}
	return nil
}

// name is the flow as a step and an end name it.
func (f flow) name(table int) string {
	in := ""
	if table > 0 {
		in = fmt.Sprintf("table=%d,", table)
	}
	return fmt.Sprintf("flow %spriority=%d,%s", in, f.priority, f.match)
}

// act carries a flow's actions out, in order. A packet that is sent to several places has an end at each.
func (w walker) act(todo []action, f flow) []End {
	var ends []End
	for i, a := range todo {
		more, over := a(&w, todo[i+1:], f)
		if ends = append(ends, more...); over {
			break
		}
	}
	return ends
}

// toLocal gives a packet to the host.
func (w walker) toLocal() []End {
	w.iif = w.zone().bridge
	return w.host()
}

// output sends a packet out by a port of the bridge.
func (w walker) output(port string) []End {
	switch {
	case port == w.names.PatchPort():
		w = w.into(w.names.ExternalSwitch(w.node), w.names.Localnet(w.zone().bridge, w.node))
		return w.route(w.names.GatewayRouter(w.node), w.names.GatewayToExternal(w.node))
	case strings.HasPrefix(port, "{"+plan.Patch):
		return w.end(Dropped, "%s leads into a network that is not walked", port)
	case port == w.port && w.frame.dst != "":
		return w.toFrame()
	case port != w.zone().uplink:
		return w.end(Dropped, "the walk does not know the port %s", port)
	}
	return w.arrive()
}

// toFrame is the nodes' network, for what a flow has addressed to another node's hardware address.
func (w walker) toFrame() []End {
	for _, name := range w.nodes {
		if name != w.node && w.zones[name].uplinkMAC() == w.frame.dst {
			w.node = name
			return w.step("to %s over the nodes' network", w.frame.dst).enter()
		}
	}
	return w.end(Dropped, "no node has the hardware address %s", w.frame.dst)
}

// arrive is the nodes' network: another node, the first by name that has the address, or beyond.
func (w walker) arrive() []End {
	w.frame = frame{src: w.zone().uplinkMAC()}
	for _, name := range w.nodes {
		if name != w.node && w.zones[name].local[w.p.Dst] == uplink {
			from := w.node
			w.node = name
			w = w.step("from %s over the nodes' network", from)
			if w.p.Reply {
				return w.end(ToHost, "") // whose the connection is, no plan tells
			}
			return w.enter()
		}
	}
	return w.end(Outside, "")
}
