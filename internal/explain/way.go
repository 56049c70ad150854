package explain

import (
	"fmt"
	"strings"

	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// Way walks a packet of a pod over the plan of the pod's node, which the world is of, and over what other nodes' plans
// must be. Tables are this host's own. The packet has a source.
func Way(kinds feature.Kinds, w *world.World, own *plan.State, tables trace.Lookup, pod *world.Pod,
	p trace.Packet) ([]trace.End, error) {
	s, err := scopeOf(kinds, w, pod, p)
	if err != nil {
		return nil, err
	}
	net := s.plansByNode()
	net[w.Self] = own
	plans, err := readPlans(net)
	if err != nil {
		return nil, err
	}
	plans.Know(w.Self, tables)
	return plans.Walk(p), nil
}

func readPlans(net trace.Network) (*trace.Cluster, error) {
	plans, err := trace.Read(net)
	if err != nil {
		return nil, fmt.Errorf("no trace: this version of Egret does not know all that its plan says, "+
			"and a guess would mislead; please report this: %w", err)
	}
	return plans, nil
}

// Steps are the ends, each with its way.
func Steps(ends []trace.End) string {
	var out strings.Builder
	for _, e := range ends {
		fmt.Fprintf(&out, "%s\n  %s\n", e, strings.Join(e.Steps, "\n  "))
	}
	return out.String()
}

// Packet returns the packet as the pod sends it: in its primary network, with its address of the destination's family
// there as source.
func Packet(w *world.World, pod *world.Pod, p trace.Packet) (trace.Packet, error) {
	network := w.Network(w.PrimaryNetwork(pod.Namespace))
	if network == nil {
		return p, fmt.Errorf("namespace %s asks for a primary network of its own, and has none: create a "+
			"UserDefinedNetwork there, or have a ClusterUserDefinedNetwork select it", pod.Namespace)
	}
	said := pod.SaidIn(network.Name)
	ips := world.FamilyOf(p.Dst).OfAddrs(said)
	if len(ips) == 0 {
		return p, fmt.Errorf("pod %s has no address of the family of %s%s: it has %v", pod.Key(), p.Dst,
			inNetwork(network.Name), said)
	}
	p.Src, p.Network = ips[0], plan.Names{Network: network.Name, ID: network.ID}
	return p, nil
}

// inNetwork names a network of users.
func inNetwork(name string) string {
	if name == ref.DefaultNetwork {
		return ""
	}
	return " in network " + plainText(name)
}

// Title says whose packet it is.
func Title(pod *world.Pod, p trace.Packet) string {
	return fmt.Sprintf("pod %s%s, %s to %s %s/%d", pod.Key(), inNetwork(p.Network.Network), p.Src, p.Dst, p.Proto,
		p.DstPort)
}

// Pod is a pod that Egret routes packets of.
func Pod(w *world.World, key string) (*world.Pod, error) {
	pod := w.Pod(key)
	switch {
	case !strings.Contains(key, "/"):
		return nil, fmt.Errorf("pod %q: write NAMESPACE/NAME, such as shop/web-0", key)
	case pod == nil:
		return nil, fmt.Errorf("no pod %s is known here: look for it with kubectl get pods -A -o wide", key)
	case pod.HostNetwork:
		return nil, fmt.Errorf("pod %s is in its host's network, which Egret does not route", key)
	}
	return pod, nil
}
