package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/internal/world"
)

// holding is an EgressIP on the third node, with senders on all nodes, and everything that is looked at: the second
// node may take over.
type holding struct {
	*namespace
	e        egressIP
	ips      []netip.Addr
	from, to sandbox.Member
	seen     *capture
	asked    *answers
}

func (c *cluster) holding(t *testing.T, name string, number int) *holding {
	t.Helper()
	h := &holding{namespace: c.namespace(t, nil), ips: c.number(number), from: c.nodes[2], to: c.nodes[1]}
	c.labelEgress(t, h.from)
	h.e = c.egressIP(t, name, h.ips, h.itself(), metav1.LabelSelector{})
	h.e.readyOn(h.from)
	h.runs(pod{name: "a", node: c.nodes[0], sends: true}, pod{name: "b", node: h.to, sends: true}, pod{name: "c",
		node: h.from, sends: true})
	c.labelEgress(t, h.to)
	h.asked, h.seen = c.asks(t, c.hosts[1], h.ips), c.capture(t)
	h.asked.onlyHolders(h.e)
	return h
}

// arrive says that pods' connections arrive with the egress IP, soon.
func (h *holding) arrive(pods ...string) {
	h.t.Helper()
	for _, p := range pods {
		h.namespace.from(p).to(h.c.outside(0)).soonArrivesAs(h.ips...)
	}
}

// connecting opens connections from a pod, four of them ten times a second, until end; none may fail, but for one that
// is under way in the very millisecond in which its packets go over to another holder: it can end there, as any older
// one does. The one after it may not.
func (h *holding) connecting(pod string) (end func()) {
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan struct{})
	opened, ended := 0, error(nil)
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			seen, err := h.namespace.from(pod).to(h.c.outside(0)).sources(2)
			opened += len(seen)
			if err != nil && ended != nil {
				h.t.Errorf("two in a row: %v; %v", ended, err)
				return
			}
			if ended = err; err != nil {
				h.t.Log(err)
				continue
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return func() { cancel(); <-done; h.t.Logf("%d connections of pod %s", opened, pod) }
}

// TestCordon: an annotation makes a node give its addresses up. No connection fails on the way, and the address has one
// holder.
func TestCordon(t *testing.T) {
	c := theCluster(t)
	h := c.holding(t, "cordon", 80)
	ends := []func(){h.connecting("a"), h.connecting("b"), h.connecting("c")}
	time.Sleep(time.Second) // so that connections are on their way
	begin := time.Now()
	leaving := func(o *v1.EgressIP) bool {
		return slices.ContainsFunc(o.Status.Leaving, func(l v1.EgressIPLeaving) bool { return l.Node == h.from.Name })
	}
	moving := c.shown(t, "cordon", leaving)
	c.cordon(t, h.from.Name, `"maintenance"`)
	h.e.readyOn(h.to)
	alone := h.asked.handedOver(h.e)
	h.e.tells(v1.EventMoved, "NodeCordoned")
	select {
	case <-moving:
	case <-time.After(soon):
		t.Error("status.leaving has not shown the move")
	}
	within(t, soon, func() error {
		o, err := h.e.get()
		if err == nil && leaving(o) {
			err = fmt.Errorf("leaving: %+v", o.Status.Leaving)
		}
		return err
	})
	h.asked.onlyHolders(h.e)
	for _, end := range ends {
		end()
	}
	t.Log(h.seen.lost(begin.Add(-100 * time.Millisecond)))
	h.arrive("a", "b", "c")
	alone()
	c.cordon(t, h.from.Name, "null")
	c.cordon(t, h.to.Name, `""`)
	t.Cleanup(func() { c.cordon(t, h.to.Name, "null") })
	h.e.readyOn(h.from)
	alone = h.asked.handedOver(h.e)
	h.asked.onlyHolders(h.e)
	h.arrive("a", "b", "c")
	alone()
	h.asked.neverTwo()
	h.seen.onlyFrom(h.namespace, h.ips)
}

func (c *cluster) cordon(t *testing.T, node, value string) {
	t.Helper()
	c.patchNode(t, node, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, v1.AnnotationEgressCordon, value))
}

// TestShutDown: a node that is shut down in order gives its addresses up first, and may host again after its boot.
func TestShutDown(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	h := c.holding(t, "shutdown", 82)
	ends := []func(){h.connecting("a"), h.connecting("b")}
	time.Sleep(time.Second) // so that connections are on their way
	if err := c.ShutDown(t.Context(), h.from.Name); err != nil {
		t.Error(err)
	}
	t.Cleanup(func() { _ = c.PowerOn(context.Background(), h.from.Name) })
	h.e.readyOn(h.to)
	alone := h.asked.handedOver(h.e)
	for _, end := range ends {
		end()
	}
	h.asked.onlyHolders(h.e)
	h.arrive("a", "b")
	on := time.Now()
	if err := c.PowerOn(t.Context(), h.from.Name); err != nil {
		t.Fatal(err)
	}
	within(t, podsTimeout, func() error {
		if value, cordoned := c.node(t, h.from.Name).Annotations[v1.AnnotationEgressCordon]; cordoned {
			return fmt.Errorf("node %s is still cordoned: %q", h.from.Name, value)
		}
		return c.isReadySince(h.from.Name, on)
	})
	alone()
	within(t, podsTimeout, func() error { return h.canHost(h.from) })
	c.unlabelEgress(t, h.to)
	h.e.readyOn(h.from)
	alone = h.asked.handedOver(h.e)
	h.asked.onlyHolders(h.e)
	h.arrive("a", "b")
	alone()
	h.asked.neverTwo()
	h.seen.onlyFrom(h.namespace, h.ips)
}

// canHost is nil if the controller gives a node an address, of the two that are labelled the one with fewer: after a
// boot it does when the node is reached.
func (h *holding) canHost(want sandbox.Member) error {
	e := h.c.egressIP(h.t, fmt.Sprint(h.e.name, "-", time.Now().UnixNano()), h.c.number(99)[:1], h.itself(),
		selects(map[string]string{"app": "nobody"}))
	defer e.delete()
	for _, node := range e.ready() {
		if node != want.Name {
			return fmt.Errorf("the controller chooses %s, not %s", node, want.Name)
		}
	}
	return nil
}

// TestPartition cuts the hosting node off from the API server, from all the rest of the network, and from both; and
// from the API server while its agent, which is killed then, has not seen the cluster yet.
func TestPartition(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	for i, cut := range []struct {
		name string
		from sandbox.Side
		kill bool
	}{{"api", sandbox.FromAPI, false}, {"fabric", sandbox.FromFabric, false}, {"both", sandbox.FromBoth, false},
		{"api-agent-killed", sandbox.FromAPI, true}} {
		t.Run(cut.name, func(t *testing.T) {
			h := c.holding(t, "partition-"+cut.name, 84+i)
			if err := c.Partition(t.Context(), h.from.Name, cut.from); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { h.heal() })
			if cut.kill {
				within(t, soon, func() error { return c.KillProcess(t.Context(), h.from.Name, "egret-node") })
			}
			h.partitioned()
			if cut.from == sandbox.FromAPI && !cut.kill {
				h.leavesBySuccessor("c")
			}
			h.heal()
			within(t, podsTimeout, func() error { return c.isReady(h.from.Name) })
			h.e.ready()
			h.asked.onlyHolders(h.e)
			h.arrive("a", "b", "c")
			h.asked.neverTwo()
			h.seen.onlyFrom(h.namespace, h.ips)
		})
	}
}

// partitioned waits for what becomes of it: the controller does not reach the node, or its kubelet does not reach the
// API server, and the addresses move.
func (h *holding) partitioned() {
	h.t.Helper()
	h.e.readyOn(h.to)
	h.asked.onlyHolders(h.e)
	h.arrive("a", "b")
}

// leavesBySuccessor says that a pod of the node that is cut off goes on when that has yielded, and let go.
func (h *holding) leavesBySuccessor(pod string) {
	h.t.Helper()
	const letsGo = 4 * time.Second // of what is on its way, 2 s after it has yielded
	h.seen.flowing(h.c, h.namespace, []string{pod}, time.Now().Add(letsGo), letsGo+soon)
}

func (h *holding) heal() {
	h.t.Helper()
	if err := h.c.Heal(context.Background(), h.from.Name); err != nil {
		h.t.Error(err)
	}
}

// TestPowerCycle: the hosting node loses its power, and when it is back with the databases that it had, it does not
// answer for what is another's by now.
func TestPowerCycle(t *testing.T) {
	c := theCluster(t)
	h := c.holding(t, "powercycle", 88)
	if err := c.PowerOff(h.from.Name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.PowerOn(context.Background(), h.from.Name) })
	h.e.readyOn(h.to)
	h.asked.onlyHolders(h.e)
	c.powerOn(t, h.from.Name)
	h.e.readyOn(h.to)
	h.asked.onlyHolders(h.e)
	h.arrive("a", "b")
	h.asked.neverTwo()
	h.seen.onlyFrom(h.namespace, h.ips)
}

// TestAgentGone: nobody tells the OVN of a node whose agent is gone for good that Kubernetes has named another one. It
// is silent all the same, from when that one announces the address, and people are told whose agent is away. Pods go
// on, and new ones on other nodes leave as they do. An agent that comes back moves nothing. It is missed by its health
// service, or where nobody asks that, by its Lease.
func TestAgentGone(t *testing.T) {
	c := theCluster(t)
	h := c.holding(t, "agent-gone", 92)
	t.Cleanup(func() { c.startAgent(t, h.from.Name) })
	must(t, c.StopProcess(t.Context(), h.from.Name, "egret-node"))
	if c.healthPort == 0 {
		c.shortenLease(t, h.from.Name)
	}
	h.e.missed(h.from.Name)
	where := h.agentAway()
	h.asked.onlyHolders(h.e)
	h.runs(pod{name: "new", node: c.nodes[0], sends: true})
	h.arrive("a", "b", "new")
	h.seen.flowing(c, h.namespace, []string{"a", "b", "c", "new"}, time.Now(), soon)
	c.startAgent(t, h.from.Name)
	h.e.readyOn(h.to)
	h.asked.onlyHolders(h.e)
	h.arrive("a", "b", "c", "new")
	if now := h.e.ready(); !maps.Equal(where, now) {
		t.Errorf("with the agent back, addresses moved from %v to %v", where, now)
	}
	h.asked.neverTwo()
	h.seen.onlyFrom(h.namespace, h.ips)
}

// shortenLease has the Lease of an agent that is gone run out as early as any may.
func (c *cluster) shortenLease(t *testing.T, node string) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"leaseDurationSeconds":%d}}`, probe.ShortestLease/time.Second)
	_, err := c.api.CoordinationV1().Leases(kube.AgentLeaseNamespace).Patch(t.Context(), node, mergePatch,
		[]byte(patch), metav1.PatchOptions{})
	must(t, err)
}

// agentAway waits until condition Ready, and an Event of the Node, name the former holder as one whose agent is away:
// it runs one of the pods. It returns where the addresses are, which is on the other node alone.
func (h *holding) agentAway() map[string]string {
	h.t.Helper()
	const reason = string(world.AgentAway)
	where := map[string]string{}
	within(h.t, soon, func() error {
		o, err := h.e.get()
		if err != nil {
			return err
		}
		where = nodesOf(o)
		c := meta.FindStatusCondition(o.Status.Conditions, v1.ConditionReady)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != reason ||
			!strings.Contains(c.Message, h.from.Name) ||
			slices.Contains(slices.Collect(maps.Values(where)), h.from.Name) {
			return fmt.Errorf("addresses are on %v; Ready is %+v, want reason %s of %s", where, c, reason, h.from.Name)
		}
		events := h.c.eventsOf(types.UID(h.from.Name))
		if !slices.ContainsFunc(events, func(e string) bool { return strings.HasPrefix(e, "Warning "+reason+" ") }) {
			return fmt.Errorf("Node %s has no Event %s: %q", h.from.Name, reason, events)
		}
		return nil
	})
	return where
}

// TestAddressInUse: a machine outside has an egress IP already, on the primary network or on a secondary one. That is
// said and told of, and ends when the machine gives it up.
func TestAddressInUse(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1])
	for _, x := range []struct {
		dev, mac string // of the machine
		ips      []netip.Addr
	}{{"eth0", "02:e6:ac:12:00:65", c.number(90)}, {link, "02:e6:ac:12:01:65", c.secondaryNumber(90)}} {
		for _, ip := range x.ips {
			t.Run(ip.String(), func(t *testing.T) {
				t.Parallel()
				c.on(t, c.hosts[1].Name, "ip", "addr", "add", netip.PrefixFrom(ip, ip.BitLen()).String(), "dev", x.dev,
					"nodad")
				remove := func() {
					_, _ = c.feed(context.Background(), c.hosts[1].Name, nil, "ip", "addr", "del", netip.PrefixFrom(ip,
						ip.BitLen()).String(), "dev", x.dev)
				}
				t.Cleanup(remove)
				e := c.egressIP(t, "in-use-"+strings.ReplaceAll(ip.String(), ":", "-"), []netip.Addr{ip}, n.itself(),
					metav1.LabelSelector{})
				within(t, podsTimeout, func() error { return e.conflicted(metav1.ConditionTrue) })
				e.tells(v1.EventAddressInUse, x.mac)
				remove()
				within(t, podsTimeout, func() error { return e.conflicted(metav1.ConditionFalse) })
				e.ready()
			})
		}
	}
}

// conflicted is nil if the condition AddressConflict has this status.
func (e egressIP) conflicted(want metav1.ConditionStatus) error {
	o, err := e.get()
	if err != nil || meta.IsStatusConditionPresentAndEqual(o.Status.Conditions, v1.ConditionAddressConflict, want) {
		return err
	}
	return fmt.Errorf("AddressConflict is not %s: conditions are %+v", want, o.Status.Conditions)
}
