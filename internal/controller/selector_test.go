package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/egret-net/egret/api/v1"
)

// TestEgressNodeSelector: an address goes to a node that matches, moves when that one no longer does, and waits with a
// condition that names the selector when none does.
func TestEgressNodeSelector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(time.Millisecond)
		in := func(zone, name string, host int) {
			n := aNode(name, host)
			n.Labels["zone"] = zone
			a.putNode(n)
		}
		in("a", "n1", 2)
		in("b", "n2", 3)
		e := anEgressIP("e", 0, "172.18.0.33")
		e.Spec.EgressNodeSelector.MatchLabels = map[string]string{"zone": "b"}
		a.putEgressIP(e)
		start(t, a)
		eventually(t, "assignment", "n2=172.18.0.33", func() string { return a.assigned("e") })
		in("b", "n1", 2)
		in("a", "n2", 3)
		eventually(t, "assignment", "n1=172.18.0.33", func() string { return a.assigned("e") })
		eventually(t, "events", "Assigned Moved", func() string { return a.reasons("e") })
		in("a", "n1", 2)
		eventually(t, "assignment", "", func() string { return a.assigned("e") })
		eventually(t, "a condition that names the selector", "true", func() string {
			says := a.condition("e", v1.ConditionAssigned).Message
			return fmt.Sprint(strings.Contains(says, "spec.egressNodeSelector (zone=b) matches no egress node"))
		})
	})
}
