package node

import "time"

// rewriteEvery is how often, at most, annotations are written anew that somebody else changes: two who do not agree
// must not keep the API server busy.
const rewriteEvery = time.Second

// rewrites bounds how often something is written anew. The zero value has written nothing yet.
type rewrites struct{ last, asked time.Time }

// due is 0 if it may be written now, which then counts as done; else how long to wait, once for each wait, and after
// that -1.
func (r *rewrites) due(now time.Time) time.Duration {
	at := r.last.Add(rewriteEvery)
	switch {
	case !now.Before(at):
		r.last = now
		return 0
	case r.asked.Equal(at):
		return -1
	}
	r.asked = at
	return at.Sub(now)
}
