package zone

// Forget has an Allocator decide about everything anew.
func (d *Allocator) Forget() { d.stale, d.last = true, nil }
