package egressip

// Forget has an Assigner decide about everything anew: of the decisions before it knows what they said, how late nodes
// are, and which of them turned Ready or NotReady.
func (d *Assigner) Forget() {
	changed := d.nodes
	d.run, d.served, d.staleness = nil, NewServed(), newStaleness()
	d.nodes = changed
	d.patience.Forget()
	for name := range d.last {
		d.Objects[name] = struct{}{}
	}
}

// Forget has an Overlapper decide about everything anew.
func (d *Overlapper) Forget() { *d = *NewOverlapper() }

// Forget makes it decide about everything.
func (d *Selector) Forget() { d.all, d.nodes = true, newNodesKnown() }
