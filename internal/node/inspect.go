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
	"github.com/egret-net/egret/internal/plane"
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
		if object == "" {
			return m.State.Text(), nil
		}
		text := m.Of(lowerKind(object)).Text()
		if text == "" {
			return "", fmt.Errorf("no row of this node concerns %s: it does not exist, or is no matter of node %s; "+
				"write KIND/NAME, such as egressip/prod or pod/shop/web-0", object, w.Self)
		}
		return text, nil
	})
}

// lowerKind lets people write EgressIP/prod.
func lowerKind(object string) string {
	kind, name, _ := strings.Cut(object, "/")
	return strings.ToLower(kind) + "/" + name
}

// Differences is part of inspect.Agent. The loop waits meanwhile: it changes nothing that is being read.
func (a *Agent) Differences(ctx context.Context, object string) (string, error) {
	return a.inLoop(ctx, func(_ *world.World, m *compile.Memo) (string, error) {
		var all []plane.Difference
		for _, p := range a.comparers {
			list, err := p.Compare(ctx, m.State)
			if err != nil {
				return "", err
			}
			all = append(all, list...)
		}
		var out strings.Builder
		slices.SortFunc(all, plane.Difference.Compare)
		for _, d := range all {
			if object == "" || compile.Concerns(d.Owner, lowerKind(object)) {
				fmt.Fprintln(&out, d)
			}
		}
		return out.String(), nil
	})
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
	var out strings.Builder
	fmt.Fprintf(&out, "pod %s, %s to %s %s/%d\n", key, p.Src, p.Dst, p.Proto, p.DstPort)
	for _, end := range trace.Walk(net, p) {
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
		return nil, fmt.Errorf("pod %s is on node %s: ask there", key, pod.Node)
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
	for _, e := range w.Selecting(pod) {
		for _, i := range e.Items {
			nodes = append(nodes, i.Node)
		}
		for _, l := range e.Leaving {
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
