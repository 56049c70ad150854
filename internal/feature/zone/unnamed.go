package zone

import (
	"time"

	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/world"
)

// unnamed remembers which networks no object names, of those that Nodes have subnets of and that were not known in this
// term: a network that went while another controller led, or none.
type unnamed struct {
	since map[string]time.Time
	named map[string]struct{} // by objects, in this decision; nil: nothing has asked for it
}

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
		delete(u.since, name)
		return time.Time{}, false
	}
	since, is := u.since[name]
	if !is {
		since = now
		u.since[name] = now
	}
	return since.Add(partKeptFor), true
}
