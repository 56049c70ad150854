package gateway

import (
	"fmt"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// NetworkBridge is the flows of the uplink's bridge for a network beside the default one, whose are Bridge's.
type NetworkBridge struct{}

func (NetworkBridge) Name() string    { return "gateway-bridge-network" }
func (NetworkBridge) Per() world.Kind { return world.KindNetwork }

// Compile adds them. The patch port says whose a packet is, and no address of a pod does: another network may have the
// same. The gateway router has given it the network's masquerade address; whatever has another source is dropped.
func (NetworkBridge) Compile(w *world.View, network string, out *plan.Rows) {
	p := w.Part(network)
	if p == nil || network == ref.DefaultNetwork {
		return
	}
	b := flows{names: plan.Names{Network: p.Name, ID: p.ID}, bridge: w.Config.Bridge, uplink: uplinkPort(w), out: out}
	b.userspace = w.Config.UserspaceOVS
	b.addFlow(plan.CopyToNetwork, b.names.CopiedTo()+",in_port="+b.uplink, "output:"+b.names.PatchPort())
	b.fromOVN()
	b.neighboursFromOVN()
	for _, f := range p.Families() {
		b.noTunnels(f, w.Config.EncapPort)
		b.addFlow(plan.Untranslated, protocolKeyword(f)+",in_port="+b.names.PatchPort(), "drop")
		b.repliesToOVN(protocolKeyword(f))
		b.letOutMasqueraded(p, f)
	}
}

// letOutMasqueraded lets out what the gateway router translated, with the node's address. Other marks than that of what
// goes to nodes ask for another source, which a network beside the default one has none of.
func (b flows) letOutMasqueraded(p *world.Part, f world.Family) {
	node, ok := f.Of(p.Host.Primary)
	source, masquerades := p.Masquerade(f)
	if !ok || !masquerades {
		return
	}
	if b.userspace {
		b.addFlow(plan.UntranslatedStill, protocolKeyword(f)+","+sourceField(f)+"="+source.String(), "drop")
	}
	for _, mark := range []int{0, plan.MarkNodeIP} {
		match := fmt.Sprintf("%s,in_port=%s,%s=%s,pkt_mark=%#x", protocolKeyword(f), b.names.PatchPort(),
			sourceField(f), source, mark)
		b.addFlow(plan.AsNode, match, b.outputActions(b.names.CommitAs(node.Addr().String())))
	}
}
