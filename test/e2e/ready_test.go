package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/test/traffic"
)

const (
	// readyTimes is how often TestReadyMeansSteered looks; in the full matrix twice as often, in each gateway mode.
	readyTimes = 30
	// inFlight is how long a datagram may be on its way to the capture on two busy cores: one that was captured later
	// was sent after Ready was seen.
	inFlight = 30 * time.Millisecond
	// portRenewal is the number of datagrams after which a sender takes another source port.
	portRenewal = 20
)

// TestReadyMeansSteered: whoever has seen Ready sees no connection that begins afterwards with another source, from
// pods on any node, over either family.
func TestReadyMeansSteered(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1])
	n.runs(pod{name: "a", node: c.nodes[0], sends: true}, pod{name: "b", node: c.nodes[1], sends: true}, pod{name: "c",
		node: c.nodes[2], sends: true})
	seen := c.capture(t)
	ips := c.number(130)
	times := readyTimes
	if fullMatrix() {
		times *= 2
	}
	for i := range times {
		seen.Forget()
		name := fmt.Sprint("ready-", i)
		ready := c.readySeen(t, name)
		e := c.egressIP(t, name, ips, n.itself(), metav1.LabelSelector{})
		var at time.Time
		select {
		case at = <-ready:
		case <-time.After(soon):
			e.ready() // says what is missing
			t.Fatal("the watch has not shown Ready")
		}
		begin := at.Add(inFlight)
		time.Sleep(time.Until(begin.Add(250 * time.Millisecond))) // each flow takes a new port in that time
		all := slices.DeleteFunc(seen.Since(begin),
			func(x traffic.Sighting) bool { return x.Kind != "new" || x.Number%portRenewal != 0 })
		if wrong := traffic.Wrong(all, n.name+"/", ips); len(wrong) > 0 {
			t.Errorf("after %d times: connections begun after Ready was seen: %v; want %v", i, wrong, ips)
		}
		if !slices.ContainsFunc(all, func(x traffic.Sighting) bool { return strings.HasPrefix(x.Pod, n.name+"/") }) {
			t.Errorf("no connection was begun in the time")
		}
		e.delete()
		within(t, soon, func() error { return seen.leavesAlone(n, ips[0].String()) })
	}
}

// leaving is nil if the latest datagrams of every pod have one of these sources.
func (s *capture) leaving(n *namespace, want []netip.Addr) error {
	pods, begin := map[string]bool{}, time.Now().Add(-100*time.Millisecond)
	for _, x := range s.Since(begin) {
		if !strings.HasPrefix(x.Pod, n.name+"/") {
			continue
		}
		if pods[x.Pod] = true; !slices.Contains(want, x.Src) {
			return fmt.Errorf("%s leaves as %s, want %v", x.Pod, x.Src, want)
		}
	}
	if len(pods) < len(n.at) {
		return fmt.Errorf("of %d pods only %v were seen", len(n.at), pods)
	}
	return nil
}

// leavesAlone is nil if the latest datagrams of every pod have the node's address.
func (s *capture) leavesAlone(n *namespace, ip string) error {
	begin := time.Now().Add(-40 * time.Millisecond)
	for _, x := range s.Since(begin) {
		if strings.HasPrefix(x.Pod, n.name+"/") && x.Kind == "new" && x.Src.String() == ip {
			return fmt.Errorf("%s still leaves as %s", x.Pod, ip)
		}
	}
	return nil
}

// readySeen tells when a watch has shown an EgressIP as Ready.
func (c *cluster) readySeen(t *testing.T, name string) <-chan time.Time {
	t.Helper()
	return c.shown(t, name, func(o *v1.EgressIP) bool {
		return meta.IsStatusConditionTrue(o.Status.Conditions, v1.ConditionReady)
	})
}

// shown tells when a watch has shown an EgressIP of which something is so.
func (c *cluster) shown(t *testing.T, name string, is func(*v1.EgressIP) bool) <-chan time.Time {
	t.Helper()
	seen := make(chan time.Time, 1)
	list := cache.NewListWatchFromClient(c.kube.EgressIP, "egressips", metav1.NamespaceAll,
		fields.OneTermEqualSelector("metadata.name", name))
	w, err := list.WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		defer w.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case event, open := <-w.ResultChan():
				if !open {
					return
				}
				if o, known := event.Object.(*v1.EgressIP); known && is(o) {
					seen <- time.Now()
					return
				}
			}
		}
	}()
	return seen
}
