package zone

import (
	"strings"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// reasonAllocation is the reason of Events about ids and subnets of nodes.
const reasonAllocation = "NodeAllocation"

// Allocator decides about Nodes: what Allocate says.
type Allocator struct{ decide.Deaf }

// Decide says what each node gets.
func (Allocator) Decide(v decide.View) ([]decide.Desired, time.Time) {
	all := Allocate(v.World)
	var out []decide.Desired
	for _, name := range v.Nodes() {
		n, a := v.Said(name), all[name]
		problem := strings.Join(a.Problems, "; ")
		d := decide.Desired{Kind: world.KindNode, Key: name, Decision: world.Decision{UID: n.UID}}
		d.Decision.Status = world.Allocation{
			ID: a.ID, Subnets: a.Subnets, Join: a.Join, Transit: a.Transit, Record: a.Record, Problem: problem,
		}
		if problem != "" && problem != n.AllocationProblem {
			d.Events = []decide.Event{{Warning: true, Reason: reasonAllocation, Action: "Allocate", Message: problem}}
		}
		out = append(out, d)
	}
	return out, time.Time{}
}
