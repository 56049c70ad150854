package world

// activity is what an EgressService does with its pods' packets of a family.
type activity uint8

const (
	inactive activity = iota // nothing: they are somebody else's, or leave with the node's address
	waiting                  // it has a host, which nobody is known to hold an address at
	binding                  // they leave as it says or not at all
)

// EgressServiceActive says whether an EgressService decides about its pods' packets of a family: it has a host, or was
// in force and has not been given up, and its Service is one for a load balancer; or it has what it has no host for
// dropped.
func (w *View) EgressServiceActive(key string, f Family) bool {
	return w.activityOf(key)[f] != inactive
}

// EgressServiceBinds says whether packets of an EgressService's pods in a family leave as it says or not at all.
func (w *View) EgressServiceBinds(key string, f Family) bool { return w.activityOf(key)[f] == binding }

// EgressServiceOf is the one that decides about a pod's packets of a family, or nil: of those that are active, the
// first that binds, else the first. One that nobody is ready for yet takes no packet from one in force. None does where
// an EgressIP forbids it. A reader of more than its name asks for the EgressService.
func (w *View) EgressServiceOf(p *Pod, f Family) *EgressService {
	var first *EgressService
	for _, s := range w.EgressServicesOf(p, f) {
		is := w.activityOf(s.Key())[f]
		if is == binding {
			first = s
			break
		}
		if is == waiting && first == nil {
			first = s
		}
	}
	if first == nil || w.Forbids(p, f) != nil {
		return nil
	}
	return first
}

// Forbids is the EgressIP that no EgressService overrides for a pod's packets of a family, or nil: it asks for
// addresses of the family and has destinations, or nobody knows which, whether it has a node or not.
func (w *View) Forbids(p *Pod, f Family) *EgressIP {
	for _, e := range w.Selecting(p) {
		if e.NeverOverridden && e.Asks(f) && (e.TrafficUnknown || w.destinationsOverlap(e, e, f)) {
			return e
		}
	}
	return nil
}

func (w *View) activityOf(key string) [2]activity { return w.activity.valueOf(w, key) }

// derivesActivity is by EgressService. One that is not served does nothing.
func derivesActivity() Derived[string, [2]activity] {
	return Derived[string, [2]activity]{
		of: func(v *View, key string) (by [2]activity) {
			if v.EgressServiceServed(key) {
				by = activityByFamily(v.EgressService(key), v.ServiceSpec(key))
			}
			return by
		},
		exists: func(w *View, key string) bool { return w.egressServices[key] != nil },
		entry:  func(key string) Entry { return Entry{KindEgressServiceActive, key} },
	}
}

func activityByFamily(e *EgressService, s *Service) (by [2]activity) {
	if e == nil || s == nil {
		return by
	}
	for _, f := range [...]Family{V4, V6} {
		switch {
		case e.DropWhenUnassigned && e.Asks(s, f), s.LoadBalancer && (e.Host == HostAll || e.InForce[f]):
			by[f] = binding
		case s.LoadBalancer && e.HasItems(f):
			by[f] = waiting
		}
	}
	return by
}
