package holder

import (
	"fmt"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// unsteeredFor is how long this node's own pods may not be steered to an address that it announces before that is a
// problem to report: longer than a move takes.
const unsteeredFor = 5 * time.Second

// unsteered is an address that this node announces and does not steer its own pods to.
type unsteered struct {
	since    time.Time
	why      string
	reported bool
}

func (m *Machine) lookAtPods(a *address) {
	why := m.facts.NotSteered(a.egressAddress())
	if why == "" {
		a.unsteered = nil
		return
	}
	if a.unsteered == nil {
		a.unsteered = &unsteered{since: m.now}
	}
	u := a.unsteered
	if u.why = why; !u.reported && m.now.Sub(u.since) >= unsteeredFor {
		u.reported = true
		m.addWarning("pods of this node are not served by an egress IP that it hosts itself",
			"egressIP", a.EgressIP, "ip", a.Announcement.IP, "why", why)
	}
}

// Problems are what has lasted, sorted.
func (m *Machine) Problems() []world.Problem {
	var out []world.Problem
	for ip, a := range m.addresses {
		if u := a.unsteered; u != nil && u.reported {
			out = append(out, world.Problem{
				Object: ref.Object{Kind: ref.EgressIP, Name: a.EgressIP}, Reason: world.ReasonNotSteered,
				Message: fmt.Sprintf("pods of this node do not get through to %s, which it hosts: %s", ip, u.why),
			})
		}
	}
	slices.SortFunc(out, world.Problem.Compare)
	return out
}
