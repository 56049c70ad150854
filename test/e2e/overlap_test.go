package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// TestOverlap: two EgressIPs select a pod. The older one serves it, the younger one says that it stands by, and serves
// it as soon as the older one is gone.
func TestOverlap(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[0], c.nodes[1])
	n.runs(pod{name: "a", node: c.nodes[0]}, pod{name: "b", node: c.nodes[2], labels: web})
	older := c.egressIP(t, "overlap-z-older", c.number(50), n.itself(), metav1.LabelSelector{})
	older.ready()
	c.nextSecond(t, older)
	younger := c.egressIP(t, "overlap-a-younger", c.number(51), n.itself(), selects(web))
	younger.ready()
	o := younger.until(v1.ConditionOverlapped, metav1.ConditionTrue, v1.ReasonServedByOther)
	said := meta.FindStatusCondition(o.Status.Conditions, v1.ConditionOverlapped).Message
	if !strings.Contains(said, "stands by for 1 pod ") || !strings.Contains(said, "overlap-z-older (1)") {
		t.Errorf("condition says %q", said)
	}
	younger.tells(v1.EventUndefinedRequest, "overlap-z-older")
	older.until(v1.ConditionOverlapped, metav1.ConditionFalse, v1.ReasonNoOverlap)
	for _, p := range []string{"a", "b"} {
		n.from(p).to(c.outside(0)).arrivesAs(c.number(50)...)
	}
	older.delete()
	n.from("b").to(c.outside(0)).formerly(c.number(50)...).soonArrivesAs(c.number(51)...)
	n.from("a").to(c.outside(0)).formerly(c.number(50)...).soonArrivesAs(c.nodes[0].IPs...)
	younger.until(v1.ConditionOverlapped, metav1.ConditionFalse, v1.ReasonNoOverlap)
}

// TestOlderTakesOver: an older EgressIP gets a node while a younger one serves the pods. They leave with the younger
// one's address until somebody holds the older one's, and never with their nodes'.
func TestOlderTakesOver(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[0], c.nodes[1])
	first := c.egressIP(t, "takeover-first", c.number(52), n.itself(), selects(web))
	// its address is the first one's
	older := c.egressIP(t, "takeover-older", c.number(52), n.itself(), metav1.LabelSelector{})
	c.nextSecond(t, older)
	younger := c.egressIP(t, "takeover-younger", c.number(53), n.itself(), metav1.LabelSelector{})
	younger.ready()
	n.runs(pod{name: "a", node: c.nodes[0], sends: true}, pod{name: "b", node: c.nodes[2], sends: true})
	seen := c.capture(t)
	for _, p := range []string{"a", "b"} {
		n.from(p).to(c.outside(0)).arrivesAs(c.number(53)...)
	}
	first.delete()
	older.ready()
	for _, p := range []string{"a", "b"} {
		n.from(p).to(c.outside(0)).formerly(c.number(53)...).soonArrivesAs(c.number(52)...)
	}
	seen.eachItsOwn(n)
}

// nextSecond waits until what is created now is younger: creationTimestamp has whole seconds.
func (c *cluster) nextSecond(t *testing.T, than egressIP) {
	t.Helper()
	within(t, soon, func() error {
		o, err := than.get()
		if err == nil && time.Since(o.CreationTimestamp.Time) < 1100*time.Millisecond {
			err = fmt.Errorf("EgressIP %s is of this second", than.name)
		}
		return err
	})
}
