package featuretest

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/egret-net/egret/internal/explain"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

func (c *cluster) showPacket(args []string) (string, error) {
	ends, err := c.sendPacket(args)
	return trace.Sentences(ends) + "\n", err
}

// showWalk prints each end's steps, and where it is.
func (c *cluster) showWalk(args []string) (string, error) {
	ends, err := c.sendPacket(args)
	var said []string
	slices.SortFunc(ends, func(a, b trace.End) int { return strings.Compare(a.String(), b.String()) })
	for _, e := range ends {
		said = append(append(said, e.Steps...), "= "+e.String())
	}
	return joinLines(said), err
}

func (c *cluster) sendPacket(args []string) ([]trace.End, error) {
	p, err := parsePacket(args[1])
	if err != nil {
		return nil, err
	}
	if node, ok := strings.CutPrefix(args[0], "outside@"); ok {
		p.Unanswered = len(args) > 2 && args[2] == "unanswered"
		return c.arriveAt(node, p)
	}
	o, ok := c.objects[id{"Pod", args[0]}].(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("no pod %s", args[0])
	}
	if p, err = explain.Packet(c.controllerWorld(), kube.Pod(o), p); err != nil {
		return nil, err
	}
	if p.Reply = len(args) > 2 && args[2] == "reply"; p.Reply {
		p.SrcPort, p.DstPort = p.DstPort, 40000
	}
	net, err := c.readPlans()
	if err != nil {
		return nil, err
	}
	ends := net.Walk(p)
	return ends, c.likeExplained(args[0], p, ends)
}

// likeExplained says that what the API alone knows leads a pod's packet to the same ends as nodes' plans do: once nodes
// have said that they hold what they should, and where nodes know nothing else that matters.
func (c *cluster) likeExplained(pod string, p trace.Packet, ends []trace.End) error {
	w := c.controllerWorld()
	a, err := explain.Ask(all.ServedKinds(), w, pod, p)
	if err != nil || p.Reply || len(a.Doubts) > 0 || hasOverdue(w) {
		return err
	}
	if api, have := trace.Sentences(a.Ends), trace.Sentences(ends); api != have {
		return fmt.Errorf("%s, but explained: %s", have, api)
	}
	for _, e := range ends {
		if by := hasGiven(w, e); by != "" && !strings.Contains(a.Text(), " "+by+" decides\n") {
			return fmt.Errorf("%s, but not explained as the doing of %s:\n%s", e, by, a.Text())
		}
	}
	return nil
}

// hasGiven is the object whose address a packet has that is outside; "" of a node's.
func hasGiven(w *world.World, e trace.End) string {
	for _, name := range w.EgressIPs() {
		if e.Kind == trace.Outside && w.EgressIP(name).Assignee(e.Src) != "" {
			return ref.Of(ref.EgressIP, name).String()
		}
	}
	for _, key := range w.EgressServices() {
		if e.Kind == trace.Outside && w.EgressService(key).Assignee(e.Src) != "" {
			return ref.Of(ref.EgressService, key).String()
		}
	}
	return ""
}

// hasOverdue says whether a node is to hold an address and does not say that it does: its pods' nodes may wait for
// that.
func hasOverdue(w *world.World) bool {
	for _, key := range slices.Concat(w.EgressIPs(), w.EgressServices()) {
		for _, a := range w.PlacementOf(key).Items {
			if !w.Holds(a.Node, key, a.IP) {
				return true
			}
		}
	}
	return false
}

// explainPacket is what kubectl egret explain prints of the same packet.
func (c *cluster) explainPacket(args []string) (string, error) {
	p, err := parsePacket(args[1])
	if err != nil {
		return "", err
	}
	if ip, err := netip.ParseAddr(args[0]); err == nil {
		return explain.AskAll(all.ServedKinds(), c.controllerWorld(), ip, p)
	}
	a, err := explain.Ask(all.ServedKinds(), c.controllerWorld(), args[0], p)
	if err != nil {
		return "", err
	}
	return a.Text(), nil
}

// arriveAt sends a packet of a client outside to a node, "NODE" or "NODE/LINK".
func (c *cluster) arriveAt(at string, p trace.Packet) ([]trace.End, error) {
	p.Src = [...]netip.Addr{netip.MustParseAddr("172.18.0.100"),
		netip.MustParseAddr("fc00:f853:ccd:e793::100")}[world.FamilyOf(p.Dst)]
	net, err := c.readPlans()
	if err != nil {
		return nil, err
	}
	if node, link, by := strings.Cut(at, "/"); by {
		return net.WalkIntoHost(node, link, p), nil
	}
	return net.Arrive(at, p), nil
}

// parsePacket reads ADDR, or ADDR:PORT/PROTO.
func parsePacket(text string) (trace.Packet, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return trace.Packet{Dst: a, Proto: "icmp"}, nil
	}
	i := strings.LastIndexByte(text, ':')
	port, proto, _ := strings.Cut(text[i+1:], "/")
	n, err := strconv.ParseUint(port, 10, 16)
	if i < 0 || err != nil || proto == "" {
		return trace.Packet{}, fmt.Errorf("%q: write ADDR or ADDR:PORT/PROTO", text)
	}
	a, err := netip.ParseAddr(strings.Trim(text[:i], "[]"))
	return trace.Packet{Dst: a, Proto: proto, DstPort: uint16(n)}, err
}
