package node

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/node/inspect"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

var _ inspect.Agent = (*Agent)(nil)

// serveQuestions answers egret-node plan and trace. The agent does its work without it.
func (a *Agent) serveQuestions(ctx context.Context, socket string) {
	l, err := cniserver.Listen(socket)
	if err == nil {
		err = inspect.Serve(ctx, l, a)
	}
	if err != nil {
		a.log.Error("egret-node plan and egret-node trace get no answers", "error", err)
	}
}

// inLoop has f asked in the loop, which alone may look at the world and the plan.
func (a *Agent) inLoop(ctx context.Context, f func(*world.World, *compile.Memo) (string, error)) (string, error) {
	var text string
	var failed error
	err := a.loop.Ask(ctx, func(w *world.World) { text, failed = f(w, a.loop.memo) })
	if err != nil {
		return "", fmt.Errorf("the agent is busy with its targets: look at its log, and ask again: %w", err)
	}
	return text, failed
}

// Plan is part of inspect.Agent.
func (a *Agent) Plan(ctx context.Context, object string) (string, error) {
	return a.inLoop(ctx, func(w *world.World, m *compile.Memo) (string, error) {
		o, err := parseObject(object, w.ObjectKinds())
		if err != nil {
			return "", err
		}
		if o == (ref.Object{}) {
			return m.State.Text(), nil
		}
		text := m.Of(w, o).Text()
		if text == "" {
			return "", fmt.Errorf("no row of this node concerns %s: it does not exist, or is no matter of node %s; "+
				"%s", object, w.Self, howToNameObjects)
		}
		return text, nil
	})
}

const howToNameObjects = "write KIND/NAME, such as egressip/prod or pod/shop/web-0"

// parseObject reads what people call an object of one of some kinds; they may write EgressIP/prod or egressip/prod.
// "" is all objects, and zero.
func parseObject(text string, kinds []string) (ref.Object, error) {
	if text == "" {
		return ref.Object{}, nil
	}
	kind, key, named := strings.Cut(text, "/")
	i := slices.IndexFunc(kinds, func(k string) bool { return strings.EqualFold(k, kind) })
	if i < 0 || !named || key == "" {
		return ref.Object{}, fmt.Errorf("%q names no object: %s; the kinds are %s", text, howToNameObjects,
			strings.Join(kinds, ", "))
	}
	return ref.Of(kinds[i], key), nil
}

// Trace is part of inspect.Agent.
func (a *Agent) Trace(ctx context.Context, pod string, p trace.Packet) (string, error) {
	return a.inLoop(ctx, func(w *world.World, m *compile.Memo) (string, error) { return traced(w, m.State, pod, p) })
}

// traced walks a packet of a pod over this node's plan, and over what other nodes' plans must be.
func traced(w *world.World, own *plan.State, key string, p trace.Packet) (string, error) {
	pod, err := ownPod(w, key)
	if err != nil {
		return "", err
	}
	ips := world.FamilyOf(p.Dst).OfAddrs(pod.IPs)
	if len(ips) == 0 {
		return "", fmt.Errorf("pod %s has no address of the family of %s: it has %v", key, p.Dst, pod.IPs)
	}
	p.Src = ips[0]
	net := trace.Network{w.Self: own}
	others := concerned(w, pod, p)
	for _, node := range others {
		net[node] = planOf(w, node, append(others, w.Self), pod, p)
	}
	plans, err := trace.Read(net)
	if err != nil {
		return "", fmt.Errorf("no trace: this version of egret-node does not know all that its plan says, "+
			"and a guess would mislead; please report this: %w", err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "pod %s, %s to %s %s/%d\n", key, p.Src, p.Dst, p.Proto, p.DstPort)
	for _, end := range plans.Walk(p) {
		fmt.Fprintf(&out, "%s\n  %s\n", end, strings.Join(end.Steps, "\n  "))
	}
	return out.String(), nil
}

// ownPod is a pod that has a port on this node.
func ownPod(w *world.World, key string) (*world.Pod, error) {
	pod := w.Pod(key)
	switch {
	case !strings.Contains(key, "/"):
		return nil, fmt.Errorf("pod %q: write NAMESPACE/NAME, such as shop/web-0", key)
	case pod == nil:
		return nil, fmt.Errorf("no pod %s is known here: look for it with kubectl get pods -A -o wide", key)
	case pod.Node != w.Self:
		return nil, fmt.Errorf("pod %s runs on %s: run this there", key, pod.Node)
	case pod.HostNetwork:
		return nil, fmt.Errorf("pod %s is in its host's network, which Egret does not route", key)
	case w.Attachment(key) == nil:
		return nil, fmt.Errorf("pod %s has no port on this node: it is starting or has ended; "+
			"look at kubectl describe pod", key)
	}
	return pod, nil
}

// concerned are the other nodes that a packet may come to: those that hold an egress IP for its pod, and those that
// have its destination.
func concerned(w *world.World, pod *world.Pod, p trace.Packet) []string {
	nodes := slices.Clone(w.NodesAt(p.Dst))
	for _, p := range placements(w, pod) {
		for _, i := range p.Items {
			nodes = append(nodes, i.Node)
		}
		for _, l := range p.Leaving {
			nodes = append(nodes, l.Node)
		}
	}
	for _, name := range w.Nodes() {
		if slices.ContainsFunc(w.Node(name).Subnets, func(s netip.Prefix) bool { return s.Contains(p.Dst) }) {
			nodes = append(nodes, name)
		}
	}
	slices.Sort(nodes)
	return slices.DeleteFunc(slices.Compact(nodes), func(name string) bool {
		return name == w.Self || w.Node(name) == nil
	})
}

// placements are those of all objects that may decide about a pod's packets.
func placements(w *world.World, pod *world.Pod) []*world.Placement {
	var out []*world.Placement
	for _, f := range w.Config.Families() {
		for _, s := range w.EgressServicesOf(pod, f) {
			out = append(out, &s.Placement)
		}
	}
	for _, e := range w.Selecting(pod) {
		out = append(out, &e.Placement)
	}
	return out
}

// planOf is what another node must hold, by what this one knows, as far as it concerns a packet.
func planOf(w *world.World, node string, nodes []string, pod *world.Pod, p trace.Packet) *plan.State {
	return compile.Some(w.As(node), all.Features(), func(k world.Kind, key string) bool {
		switch k {
		case world.KindNode:
			return slices.Contains(nodes, key)
		case world.KindPod, world.KindAttachment:
			o := w.Pod(key)
			return key == pod.Key() || o != nil && slices.Contains(o.IPs, p.Dst)
		case world.KindEgressIP:
			return slices.ContainsFunc(w.Selecting(pod), func(e *world.EgressIP) bool { return e.Name == key })
		case world.KindService:
			return slices.ContainsFunc(w.Service(key).Frontends(), func(f world.Frontend) bool { return f.IP == p.Dst })
		}
		return true
	})
}
