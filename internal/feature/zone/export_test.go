package zone

import (
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// Forget has an Allocator decide about everything anew. It keeps what depends on history: what it told, which networks
// it has known, and since when nodes have no pod of them.
func (d *Allocator) Forget() {
	told, known, left := d.told, d.parts.known, d.parts.left
	*d = *NewAllocator()
	d.told, d.parts.known, d.parts.left = told, known, left
	for name := range told {
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
