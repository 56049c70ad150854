package probe

import (
	"maps"
	"slices"
	"time"
)

// Lease is an agent's Lease as the API server shows it.
type Lease struct {
	Version string        // changes with each renewal
	Lasts   time.Duration // for how long a renewal says that the agent lives
}

// Bounds of what a Lease may say of itself. For up to 20 s after an agent has died its node answers for egress IPs that
// another node announces, so none is taken for dead earlier.
const (
	ShortestLease = 20 * time.Second
	LongestLease  = time.Hour
)

// Lasting returns for how long a renewal of such a Lease says that the agent lives, within bounds.
func Lasting(says time.Duration) time.Duration { return min(max(says, ShortestLease), LongestLease) }

// inDoubt is for how many times as long a Lease may be late while many are.
const inDoubt = 5

// LeaseJudge says of each agent by its Lease whether the agent lives. It does no I/O and has no clock.
//
//   - It counts from when it first saw a renewal, and compares no node's clock with its own. So a controller that
//     starts gives every agent the full time.
//   - An agent that never wrote a Lease is not judged: it may be one that knows of none.
//   - Time in which nobody could read Leases does not count: after a pause of half of a Lease's time, all that are not
//     late begin again.
//   - While no Lease is renewed, or several are overdue and these are at least half of them, it is rather the agents'
//     way to the API server that is broken. Then, and for half of a Lease's time afterwards, an agent is declared dead
//     only when it is late for five times as long. A Lease is overdue at half of its time, so that the first one to be
//     late in such an outage is in doubt already.
//   - An agent that was declared dead lives when its Lease is renewed. It is in no count until then.
type LeaseJudge struct {
	leases   map[string]*renewal
	looked   time.Duration // when it last looked
	doubtful time.Duration // when many were last overdue
	doubted  bool          // they ever were
}

// renewal is the last one of a Lease.
type renewal struct {
	Lease
	seen time.Duration
	late bool // the agent was declared dead
}

// AgentChange says that an agent was found dead, or alive again.
type AgentChange struct {
	Node   string
	Dead   bool
	Silent time.Duration // how long ago the last renewal was seen
}

// Look draws the conclusions from all Leases as they were read at a time, and returns what has become different, by
// node. An agent whose Lease is gone counts as one that never wrote any.
func (j *LeaseJudge) Look(now time.Duration, leases map[string]Lease) (changes []AgentChange) {
	paused := now - j.looked
	j.looked = now
	for _, node := range slices.Sorted(maps.Keys(j.leases)) {
		if _, is := leases[node]; !is {
			changes = appendAlive(changes, node, j.leases[node], now)
			delete(j.leases, node)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(leases)) {
		r, lease := j.recallRenewal(node), leases[node]
		renewed := r.Version != lease.Version
		if renewed {
			changes = appendAlive(changes, node, r, now)
			r.late = false
		}
		if r.Lease = lease; renewed || !r.late && paused >= lease.Lasts/2 {
			r.seen = now
		}
	}
	return append(changes, j.declareDead(now)...)
}

func appendAlive(changes []AgentChange, node string, r *renewal, now time.Duration) []AgentChange {
	if !r.late {
		return changes
	}
	return append(changes, AgentChange{Node: node, Silent: now - r.seen})
}

// recallRenewal returns what is known of a node's Lease.
func (j *LeaseJudge) recallRenewal(node string) *renewal {
	if j.leases == nil {
		j.leases = map[string]*renewal{}
	}
	if j.leases[node] == nil {
		j.leases[node] = &renewal{}
	}
	return j.leases[node]
}

// declareDead finds those that are dead from now on.
func (j *LeaseJudge) declareDead(now time.Duration) (changes []AgentChange) {
	if j.manyOverdue(now) {
		j.doubtful, j.doubted = now, true
	}
	for _, node := range slices.Sorted(maps.Keys(j.leases)) {
		r := j.leases[node]
		silent := now - r.seen
		patience := r.Lasts
		if j.doubted && now-j.doubtful < r.Lasts/2 {
			patience *= inDoubt
		}
		if !r.late && silent >= patience {
			r.late = true
			changes = append(changes, AgentChange{Node: node, Dead: true, Silent: silent})
		}
	}
	return changes
}

// manyOverdue says whether no Lease was renewed in time, or several were not that are at least half of them.
func (j *LeaseJudge) manyOverdue(now time.Duration) bool {
	overdue, all := 0, 0
	for _, r := range j.leases {
		if r.late {
			continue
		}
		if all++; now-r.seen >= r.Lasts/2 {
			overdue++
		}
	}
	return overdue > 0 && overdue == all || overdue > 1 && 2*overdue >= all
}
