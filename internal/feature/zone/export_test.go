package zone

import (
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// Forget has an Allocator decide about everything again. It keeps what depends on history: what it told, what Nodes
// had, which subnets rest, which networks it has known, and since when nodes have no pod of them.
func (d *Allocator) Forget() {
	old := *d
	*d = *NewAllocator()
	d.told, d.last, d.resting = old.told, old.last, old.resting
	d.parts.known, d.parts.left = old.parts.known, old.parts.left
	for name := range d.last {
		d.changed[name] = struct{}{} // which may be gone
	}
}

// Allocate returns the allocation of each node, decided from nothing.
func Allocate(w *world.World) map[string]Allocation {
	d, all := NewAllocator(), map[string]Allocation{}
	d.Decide(decide.View{World: w, Now: time.Unix(0, 0)})
	for name, got := range d.last {
		all[name] = got.Allocation
	}
	return all
}
