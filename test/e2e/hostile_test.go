package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// foreignMAC is no machine's of the sandbox.
const foreignMAC = "02:00:00:de:ad:01"

// TestHostileNode: somebody with the rights of an administrator writes into a node's Node and EgressNode what its agent
// never would, while that node is a former holder to whom the present one passes packets on, which is when its words
// get furthest. Nothing of it gets into another node's bridge, others' pods go on, and the node is named. Gateway modes
// do not differ in this: it runs in one.
func TestHostileNode(t *testing.T) {
	c := theCluster(t)
	c.inOneMode(t)
	h := newHostile(t, c)
	h.says(v1.AnnotationL3GatewayConfig, gatewayOf(foreignMAC))
	within(t, soon, func() error { return h.passesOn(true) }) // its words do get here
	h.says(v1.AnnotationL3GatewayConfig, h.honest[v1.AnnotationL3GatewayConfig])
	within(t, soon, func() error { return h.passesOn(false) })
	for _, x := range []struct{ name, annotation, text string }{
		{"line break", v1.AnnotationL3GatewayConfig,
			gatewayOf("02:00:00:00:00:03\ncookie=0xbad,priority=65000,actions=drop")},
		{"second flow", v1.AnnotationL3GatewayConfig,
			gatewayOf(foreignMAC + ",drop\ncookie=0xbad,priority=65000,actions=drop")},
		{"control characters", v1.AnnotationL3GatewayConfig, gatewayOf("02:00:00:00:00:03\x00\x1b[2J\u2028")},
		{"very long", v1.AnnotationL3GatewayConfig, gatewayOf(strings.Repeat("02:", 50_000))},
		{"many addresses", v1.AnnotationHostCIDRs, h.manyAddresses()},
	} {
		t.Run(x.name, func(t *testing.T) {
			in := h.with(t)
			in.says(x.annotation, x.text)
			within(t, soon, func() error { return in.named(x.annotation) })
			in.harmless()
		})
	}
	h.tells(v1.AnnotationL3GatewayConfig)
	h.tells(v1.AnnotationHostCIDRs)
	h.seen.eachItsOwn(h.n)
	if lost := h.seen.lost(h.begin); lost.Gap > standstill {
		t.Errorf("traffic stood still: %s", lost)
	}
}

// hostile is a node that is misused, and two EgressIPs: one of which it held an address that another node holds now,
// and one that is none of its business.
type hostile struct {
	t           *testing.T
	c           *cluster
	n           *namespace
	node        sandbox.Member
	own, others []netip.Addr
	honest      map[string]string // annotations
	seen        *capture
	begin       time.Time
}

func newHostile(t *testing.T, c *cluster) *hostile {
	h := &hostile{t: t, c: c, n: c.namespace(t, nil), node: c.nodes[2], own: c.number(160), others: c.number(161),
		honest: map[string]string{}}
	c.labelEgress(t, c.nodes[1])
	others := c.egressIP(t, "hostile-others", h.others, h.n.itself(), selects(map[string]string{"app": "others"}))
	others.readyOn(c.nodes[1])
	c.labelEgress(t, h.node)
	var own egressIP
	within(t, soon, func() error { // the controller may learn of the EgressIP before it learns of the label
		own = c.egressIP(t, "hostile-own", h.own, h.n.itself(), selects(map[string]string{"app": "own"}))
		if where := own.ready(); !slices.Contains(slices.Collect(maps.Values(where)), h.node.Name) {
			own.delete()
			return fmt.Errorf("%s hosts none of %v", h.node.Name, where)
		}
		return nil
	})
	h.seen = c.capture(t)
	h.n.runs(pod{name: "a", node: c.nodes[0], labels: map[string]string{"app": "own"}, sends: true},
		pod{name: "b", node: c.nodes[1], labels: map[string]string{"app": "others"}, sends: true})
	own.ready()
	h.seen.flowing(c, h.n, []string{"a", "b"}, time.Now(), soon)
	h.begin = time.Now()
	for key, text := range c.node(t, h.node.Name).Annotations {
		if key == v1.AnnotationL3GatewayConfig || key == v1.AnnotationHostCIDRs {
			h.honest[key] = text
		}
	}
	h.freeze()
	return h
}

// freeze stops the node's agent, which would put its annotations right, and that of the node with its pod, which keeps
// the controller from having it let go: for 30 s it is one that is leaving. Then the address moves, and it claims
// another one too.
func (h *hostile) freeze() {
	h.t.Helper()
	for _, m := range []sandbox.Member{h.node, h.c.nodes[0]} {
		h.t.Cleanup(func() {
			must(h.t, h.c.SignalProcess(context.Background(), m.Name, "egret-node", syscall.SIGCONT))
		})
		must(h.t, h.c.SignalProcess(h.t.Context(), m.Name, "egret-node", syscall.SIGSTOP))
	}
	var held []egretv1.Held
	for _, ip := range h.own {
		held = append(held, egretv1.Held{EgressIP: "hostile-own", IP: ip.String()})
	}
	for _, ip := range h.others {
		held = append(held, egretv1.Held{EgressIP: "hostile-others", IP: ip.String()})
	}
	status := map[string]any{"holding": held, "holdingCount": len(held), "problems": []string{
		"egressip/hostile-others: \x00\n" + strings.Repeat("x", 900), strings.Repeat("\u2028", 1000)}}
	patch, err := json.Marshal(map[string]any{"status": status})
	must(h.t, err)
	must(h.t, h.c.kube.Egret.Patch(mergePatch).Resource("egressnodes").Name(h.node.Name).
		Body(patch).Do(h.t.Context()).Error())
	h.c.unlabelEgress(h.t, h.node)
}

func (h *hostile) with(t *testing.T) *hostile {
	in := *h
	in.t = t
	return &in
}

func gatewayOf(mac string) string {
	text, err := json.Marshal(map[string]any{"default": map[string]any{"mode": "shared", "mac-address": mac}})
	if err != nil {
		panic(err) // strings can be encoded
	}
	return string(text)
}

// manyAddresses are those of all others, and thousands more.
func (h *hostile) manyAddresses() string {
	list := texts(concat(h.own, h.others, h.c.nodes[0].IPs, h.c.nodes[1].IPs, h.n.ips["a"], h.n.ips["b"]))
	for i := range 8000 {
		list = append(list, fmt.Sprintf("10.244.%d.%d/32", i/250, i%250))
	}
	text, err := json.Marshal(list)
	must(h.t, err)
	return string(text)
}

// says writes one annotation, and the others as they were.
func (h *hostile) says(annotation, text string) {
	h.t.Helper()
	all := map[string]string{}
	for key, was := range h.honest {
		all[key] = was
	}
	all[annotation] = text
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": all}})
	must(h.t, err)
	h.c.patchNode(h.t, h.node.Name, string(patch))
}

// passesOn is nil while the holder sends, or does not, to a machine that the former holder named what it knows nothing
// of.
func (h *hostile) passesOn(want bool) error {
	flows := h.c.on(h.t, h.c.nodes[1].Name, "ovs-ofctl", "--no-names", "dump-flows", "breth0", "table=1")
	if strings.Contains(flows, foreignMAC) != want {
		return fmt.Errorf("flows to %s: want %v\n%s", foreignMAC, want, flows)
	}
	return nil
}

// named is nil when the controller says of the node that its annotation cannot be read, in a line that people can read.
func (h *hostile) named(annotation string) error {
	o, err := h.c.api.CoreV1().Nodes().Get(h.t.Context(), h.node.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	said := o.Annotations[v1.AnnotationAllocationProblem]
	if !strings.Contains(said, "annotation "+annotation+": ") {
		return fmt.Errorf("of %s is said: %q", annotation, said)
	}
	if len(said) > 1024 || strings.ContainsFunc(said, unicode.IsControl) {
		h.t.Errorf("it is said in %d bytes: %q", len(said), said)
	}
	return nil
}

// harmless: no node has a flow that was smuggled in, or one to a machine that is none, and the others' pods leave as
// they do.
func (h *hostile) harmless() {
	h.t.Helper()
	for _, m := range h.c.nodes {
		flows := h.c.on(h.t, m.Name, "ovs-ofctl", "--no-names", "dump-flows", "breth0")
		if strings.Contains(flows, "cookie=0xbad") || strings.Contains(flows, "priority=65000") ||
			strings.Contains(flows, foreignMAC) {
			h.t.Errorf("flows of %s:\n%s", m.Name, flows)
		}
	}
	in := *h.n
	in.t = h.t
	in.from("a").to(h.c.outside(0)).arrivesAs(h.own...)
	in.from("b").to(h.c.outside(0)).arrivesAs(h.others...)
	others := egressIP{h.t, h.c, "hostile-others"}
	others.readyOn(h.c.nodes[1])
}

// tells waits for the Event about an annotation of the node.
func (h *hostile) tells(annotation string) {
	h.t.Helper()
	within(h.t, soon, func() error {
		events := h.c.eventsOf(types.UID(h.node.Name))
		if !slices.ContainsFunc(events, func(s string) bool {
			return strings.Contains(s, "annotation "+annotation+": ")
		}) {
			return fmt.Errorf("no Event about %s among %q", annotation, events)
		}
		return nil
	})
}
