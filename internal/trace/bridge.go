package trace

import (
	"fmt"

	"github.com/egret-net/egret/internal/plan"
)

// untaken is why a packet ends in a table without a flow for it.
const untaken = "no flow of the gateway bridge takes it"

// frame is the hardware addresses of a packet on the gateway bridge, "" where the walk does not know them.
type frame struct{ src, dst string }

// enterNode is a packet that comes to a node over the uplink.
func (w walker) enterNode() []End {
	w.mark, w.frame.dst = 0, w.ownZone().uplinkMAC()
	return w.enterBridge(w.ownZone().uplink)
}

// uplinkMAC is the hardware address that the host shares with its gateway router.
func (z *zone) uplinkMAC() string { return z.macs[z.names.GatewayToExternal(z.node)] }

// enterBridge is the gateway bridge, for packets from OVN, from the host, or from outside.
func (w walker) enterBridge(port string) []End {
	w.port, w.tracked, w.reg0 = port, false, 0
	if port != w.ownZone().uplink {
		w.frame = frame{}
	}
	if ends := w.walkTable(0); len(ends) > 0 {
		return ends
	}
	return w.endWith(Dropped, untaken)
}

// walkTable is the ends of a packet in a table; none where no flow takes it, which sends it nowhere.
func (w walker) walkTable(number int) []End {
	if w.hops++; w.hops > maxHops {
		return w.endWith(Dropped, "a loop")
	}
	for _, f := range w.ownZone().flows[number] {
		if f.matchesPacket(w) {
			ends := w.addStep("%s actions=%s", f.nameIn(number), f.text).carryOut(f.actions, f)
			if len(ends) == 0 {
				return w.addStep("%s actions=%s", f.nameIn(number), f.text).endWith(Dropped, "%s", f.nameIn(number))
			}
			return ends
		}
	}
	return nil
}

// nameIn is the flow as a step and an end name it.
func (f flow) nameIn(table int) string {
	in := ""
	if table > 0 {
		in = fmt.Sprintf("table=%d,", table)
	}
	return fmt.Sprintf("flow %spriority=%d,%s", in, f.priority, f.match)
}

// carryOut carries a flow's actions out, in order. A packet that is sent to several places has an end at each.
func (w walker) carryOut(todo []action, f flow) []End {
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
	w.iif = w.ownZone().bridge
	return w.enterHost()
}

// outputPort sends a packet out by a port of the bridge.
func (w walker) outputPort(port string) []End {
	switch {
	case port == plan.PatchPort:
		w = w.crossSwitch(w.names.ExternalSwitch(w.node), w.names.Localnet(w.ownZone().bridge, w.node))
		return w.enterRouter(w.names.GatewayRouter(w.node), w.names.GatewayToExternal(w.node))
	case port == w.port && w.frame.dst != "":
		return w.toFrame()
	case port != w.ownZone().uplink:
		return w.endWith(Dropped, "the walk does not know the port %s", port)
	}
	return w.arriveOutside()
}

// toFrame is the nodes' network, for what a flow has addressed to another node's hardware address.
func (w walker) toFrame() []End {
	for _, name := range w.nodes {
		if name != w.node && w.zones[name].uplinkMAC() == w.frame.dst {
			w.node = name
			return w.addStep("to %s over the nodes' network", w.frame.dst).enterNode()
		}
	}
	return w.endWith(Dropped, "no node has the hardware address %s", w.frame.dst)
}

// arriveOutside is the nodes' network: another node, the first by name that has the address, or beyond.
func (w walker) arriveOutside() []End {
	w.frame = frame{src: w.ownZone().uplinkMAC()}
	for _, name := range w.nodes {
		if name != w.node && w.zones[name].local[w.p.Dst] == uplink {
			from := w.node
			w.node = name
			w = w.addStep("from %s over the nodes' network", from)
			if w.p.Reply {
				return w.endWith(ToHost, "") // whose the connection is, no plan tells
			}
			return w.enterNode()
		}
	}
	return w.endWith(Outside, "")
}
