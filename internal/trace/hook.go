package trace

import "github.com/egret-net/egret/internal/plan"

// maxJumps is more than the kernel allows.
const maxJumps = 16

// passHook is a packet at a hook of the host's kernel: it passes all base chains there, in the order of their
// priorities.
func (w walker) passHook(name string, next func(walker) []End) []End {
	done := w.translated
	return w.passChains(w.ownZone().hooks[name], func(w walker) []End {
		w.translated = done
		return next(w)
	})
}

// passChains is the next of the chains, and those after it.
func (w walker) passChains(chains []*chain, next func(walker) []End) []End {
	if len(chains) == 0 {
		return next(w)
	}
	c, rest := chains[0], chains[1:]
	// A connection is translated by its first packet, and by one rule; replies are translated back without one.
	skipped := c.spec.Type == "nat" && (w.translated || w.p.Reply) || c.spec.Device != "" && c.spec.Device != w.iif
	if skipped {
		return w.passChains(rest, next)
	}
	w, v := w.evaluateChain(c, 0)
	switch {
	case v.kind == drop:
		return w.endWith(Dropped, "%s", v.why)
	case v.kind == goOn && c.spec.Policy == "drop":
		return w.endWith(Dropped, "policy of the chain %s", c.id)
	case v.kind == destination:
		return w.toEach(v, func(w walker) []End { return w.passChains(rest, next) })
	case v.kind == source:
		w.translated = true
	}
	return w.passChains(rest, next)
}

// toEach goes on with each destination that a map may give.
func (w walker) toEach(v verdict, next func(walker) []End) []End {
	var ends []End
	for _, to := range v.to {
		out := w.addStep("host rule %s: %s", v.why, to)
		out.p.Dst, out.p.DstPort, out.translated = to.Addr(), to.Port(), true
		ends = append(ends, next(out)...)
	}
	return ends
}

// evaluateChain is what a chain makes of the packet; goOn says that none of its rules decides.
func (w walker) evaluateChain(c *chain, depth int) (walker, verdict) {
	if depth > maxJumps {
		return w, verdict{kind: drop, why: "a loop of chains"}
	}
	for _, r := range c.rules {
		next, v := w.applyRule(r)
		switch w = next; v.kind {
		case goOn, mismatch:
			continue
		case leave:
			return w, verdict{}
		case jump, goTo:
			out, inner := w.evaluateChain(w.ownZone().chains[plan.NFTChain{Family: c.id.Family, Name: v.chain}],
				depth+1)
			if w = out; v.kind == goTo || inner.kind != goOn {
				return w, inner
			}
		default:
			return w, v
		}
	}
	return w, verdict{}
}

// applyRule is one rule. Its effects before a condition that does not hold stay.
func (w walker) applyRule(r rule) (walker, verdict) {
	changed := w
	for _, s := range r.statements {
		switch v := s(&changed); v.kind {
		case goOn:
		case change:
			changed.steps = w.addStep("host rule %s", r.text).steps
		case accept, source:
			return changed.stepOnce(w, r), v
		case destination:
			v.why = r.text
			return changed, v
		default:
			return changed, v
		}
	}
	return changed, verdict{}
}

// stepOnce notes a rule that has decided, if it was not noted as one that changed the packet.
func (w walker) stepOnce(before walker, r rule) walker {
	if len(w.steps) > len(before.steps) {
		return w
	}
	return w.addStep("host rule %s", r.text)
}
