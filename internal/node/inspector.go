package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/explain"
	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/node/inspect"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

var _ inspect.Agent = (*inspector)(nil)

// inspector answers egret-node plan and trace.
type inspector struct {
	kinds feature.Kinds
	loop  *Loop
	// comparers are the planes that can say what their targets lack.
	comparers []plane.Comparer
	reading   chan struct{} // full while one of their targets is read
}

// inLoop has f asked in the loop, which alone may look at the world and the plan.
func (x *inspector) inLoop(ctx context.Context, f func(*world.World, *compile.Memo) (string, error)) (string, error) {
	var text string
	var failed error
	err := x.loop.Ask(ctx, func(w *world.World) { text, failed = f(w, x.loop.memo) })
	if err != nil {
		return "", fmt.Errorf("the agent is busy with its targets: look at its log, and ask again: %w", err)
	}
	return text, failed
}

// Plan is part of inspect.Agent.
func (x *inspector) Plan(ctx context.Context, object string) (string, error) {
	return x.inLoop(ctx, func(w *world.World, m *compile.Memo) (string, error) {
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
func (x *inspector) Trace(ctx context.Context, pod string, p trace.Packet) (string, error) {
	host, err := route.ReadHost(ctx)
	if err != nil {
		return "", err
	}
	return x.inLoop(ctx, func(w *world.World, m *compile.Memo) (string, error) {
		return tracePacket(x.kinds, w, m.State, host.Route, pod, p)
	})
}

// tracePacket walks a packet of a pod over this node's plan and its host's own tables, and over what other nodes' plans
// must be.
func tracePacket(kinds feature.Kinds, w *world.World, own *plan.State, tables trace.Lookup, key string, p trace.Packet,
) (string, error) {
	pod, err := ownPod(w, key)
	if err != nil {
		return "", err
	}
	if p, err = explain.Packet(w, pod, p); err != nil {
		return "", err
	}
	ends, err := explain.Way(kinds, w, own, tables, pod, p)
	if err != nil {
		return "", err
	}
	text := explain.Title(pod, p) + "\n" + explain.Steps(ends)
	for _, doubt := range explain.Elsewhere(w, pod, p) {
		text += doubt + "\n"
	}
	return text, nil
}

// ownPod is a pod that has a port on this node.
func ownPod(w *world.World, key string) (*world.Pod, error) {
	pod, err := explain.Pod(w, key)
	switch {
	case err != nil:
		return nil, err
	case pod.Node != w.Self:
		return nil, fmt.Errorf("pod %s runs on %s: run this there", key, pod.Node)
	case w.Attachment(key) == nil:
		return nil, fmt.Errorf("pod %s has no port on this node: it is starting or has ended; "+
			"look at kubectl describe pod", key)
	}
	return pod, nil
}
