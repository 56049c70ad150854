package zone

import (
	"time"

	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/world"
)

// unnamed remembers which networks no object names, of those that Nodes have subnets of and that were not known in this
// term: a network that went while another controller led, or none. Each decision is about all Nodes with such subnets.
type unnamed struct {
	since, before map[string]time.Time // in this decision, and in the last one
	named         map[string]struct{}  // by objects, in this decision; nil: nothing has asked for it
}

// beginDecision forgets networks that the last decision has not met, or whose subnets went by it.
func (u *unnamed) beginDecision() { u.before, u.since, u.named = u.since, map[string]time.Time{}, nil }

// goneAt returns when a Node's subnets of a network go. They stay as long as an object names the network, or another
// plugin may have written them. Otherwise they stay as long as those of a node without pods: the objects may be seen
// later than the Node. A watch is late by 3 minutes at most (internal/kube/standstill.go).
func (u *unnamed) goneAt(w *world.View, name string, now time.Time) (at time.Time, goes bool) {
	if !networks.IsRequestName(name) {
		return time.Time{}, false
	}
	if u.named == nil {
		u.named = networks.NamedNetworks(w)
	}
	if _, is := u.named[name]; is {
		return time.Time{}, false
	}
	since, is := u.before[name]
	if !is {
		since = now
	}
	end := since.Add(partKeptFor)
	if now.Before(end) {
		u.since[name] = since
	}
	return end, true
}
