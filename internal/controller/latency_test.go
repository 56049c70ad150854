package controller_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/controller"
)

// observations of a histogram, over all its labels; -1 where there is none.
func observations(t *testing.T, m *controller.Metrics, name string) string {
	t.Helper()
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	for _, f := range families {
		if f.GetName() == name {
			for _, s := range f.GetMetric() {
				n += s.GetHistogram().GetSampleCount()
			}
		}
	}
	return fmt.Sprint(n)
}

// A new address is programmed; one whose node is lost fails over, and is measured when the next node says that it holds
// it.
func TestLatencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, m, _ := oneAssigned(t, time.Millisecond, "n1", "n2")
		count := func(name string) func() string { return func() string { return observations(t, m, name) } }
		eventually(t, "events", "Assigned", func() string { return a.reasons("e") }) // it is written
		a.hold("n1", map[string][]string{"e": {"172.18.0.33"}})
		eventually(t, "programmed", "1", count("egret_controller_programming_seconds"))
		if n := observations(t, m, "egret_controller_failover_seconds"); n != "0" {
			t.Errorf("%s failovers of what was new", n)
		}
		a.deleteNode("n1")
		eventually(t, "assignment", "n2=172.18.0.33", func() string { return a.assigned("e") })
		eventually(t, "events", "Assigned Moved", func() string { return a.reasons("e") })
		a.hold("n2", map[string][]string{"e": {"172.18.0.33"}})
		eventually(t, "failed over", "1", count("egret_controller_failover_seconds"))
		eventually(t, "programmed", "2", count("egret_controller_programming_seconds"))
	})
}

// Nobody can host for a while: the failover is from the loss to the next holder.
func TestFailoverThroughNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, m, _ := oneAssigned(t, time.Millisecond, "n1")
		a.deleteNode("n1")
		eventually(t, "assignment", "", func() string { return a.assigned("e") })
		a.putNode(aNode("n2", 3))
		eventually(t, "assignment", "n2=172.18.0.33", func() string { return a.assigned("e") })
		a.hold("n2", map[string][]string{"e": {"172.18.0.33"}})
		eventually(t, "failed over", "1",
			func() string { return observations(t, m, "egret_controller_failover_seconds") })
	})
}
