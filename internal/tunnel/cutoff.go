package tunnel

import "time"

const (
	// atOnce is within what time all must have fallen silent: a session's own 400 ms, and some for the report of it. A
	// node that falls silent later than others is itself silent.
	atOnce = 500 * time.Millisecond
	// regainWait is how long the others may take to answer after the first of them does: sessions that are down send
	// every second, and come up by themselves, one by one.
	regainWait = 1200 * time.Millisecond
)

// cutOff is whether this host receives nothing, or stood still: all of several nodes fell silent at once. That says
// nothing of any of them, and to count those as down that answer last would move connections through them. So while it
// lasts no node becomes down.
type cutOff struct {
	is   bool
	ends time.Time // zero while no node answers
}

// followSessions takes in how many sessions are up and down.
func (c *cutOff) followSessions(nodes map[string]*node, up, down int, now time.Time) {
	switch {
	case up == 0 && down > 1 && (c.is || silentAtOnce(nodes)):
		*c = cutOff{is: true}
	case c.is && up > 0 && c.ends.IsZero():
		c.ends = now.Add(regainWait)
	}
}

// hasEnded says whether it is over now.
func (c *cutOff) hasEnded(now time.Time) bool {
	if c.ends.IsZero() || now.Before(c.ends) {
		return false
	}
	*c = cutOff{}
	return true
}

// silentAtOnce says whether all nodes that are silent fell so at once.
func silentAtOnce(nodes map[string]*node) bool {
	var first, last time.Time
	for _, n := range nodes {
		if n.silent.IsZero() {
			continue
		}
		if first.IsZero() || n.silent.Before(first) {
			first = n.silent
		}
		if n.silent.After(last) {
			last = n.silent
		}
	}
	return last.Sub(first) < atOnce
}
