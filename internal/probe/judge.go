package probe

import (
	"time"

	"github.com/egret-net/egret/internal/world"
)

// Signs are when a node last answered, by a clock that starts with the probing.
type Signs struct {
	Host  time.Duration // its kernel answered, or its agent did
	Agent time.Duration // its agent answered that it serves
	// Direct is when its kernel answered at its address on the primary network, where it is asked while it is silent at
	// its management address.
	Direct time.Duration
	Since  time.Duration // its probing began: until it answers, the others say this
}

// hasAnswered says whether a node ever did.
func (s Signs) hasAnswered() bool { return s.Host > s.Since }

// agentAnswered says whether its agent ever did.
func (s Signs) agentAnswered() bool { return s.Agent > s.Since }

// comeback is how soon after its loss a node is often back: a switch or a starved machine has then stood still, no
// more.
const comeback = 5 * time.Second

// steady is how long a node answers between two losses that are in doubt: one that comes and goes is lost.
const steady = 10 * time.Second

// debut is for how many times as long a node, or an agent, may be silent that never answered.
const debut = 5

// Judge says of each node whether it can be reached. It does no I/O and has no clock.
//
//   - A host that was silent for Total is dead at once. A refused connection is an answer.
//   - One that never answered is given longer: this process has just begun, and the ways to the nodes may open one
//     after the other, as they do on a host that has just booted. To take a node's addresses breaks its connections, so
//     nobody is dead for being late.
//   - An agent that was silent for Grace, while its host answers, is away; a restart and an exchange of certificates do
//     not take so long. One that never answered is given longer: where agents are asked since this process began,
//     theirs may be restarted with the new settings one after the other.
//   - A node that was dead is back when its host answers; if agents are asked, when its agent does.
//   - As long as no other node answered within half of Total, nobody is declared dead: then it is this host that is
//     cut off, and to move addresses would take them from nodes that are well. What was declared before stands. This
//     host's own addresses answer always, and therefore prove nothing.
//   - Unless witnesses answered all the while: the API server's machine, the default gateway. Then the others are dead.
//     That does not hold while one of them answers at its address on the primary network: then it is the tunnels that
//     are broken, here or there.
//   - A node that has never answered, or is silent for Total and not declared dead, is not answering: nobody can tell
//     whether it is alive. Nor is one that was declared dead less than comeback ago, if it had answered for steady.
//   - For half of Total after that, or after a stall of this process, nobody is declared dead either: the answers come,
//     or wait to be read.
type Judge struct {
	Total, Grace time.Duration
	Agents       bool   // agents are asked
	Self         string // the node that this runs on

	verdicts   map[string]verdict // of those who are not well
	probed     map[string]probing
	last       time.Duration // when it looked
	stalled    time.Duration // until when answers may wait to be read
	graceUntil time.Duration // until when nobody is declared dead
	cutOff     bool
	witnesses  testimony
}

// verdict is what holds of a node, and since when.
type verdict struct {
	why   world.Unreachability
	since time.Duration
}

// probing is that of a node: when it began, and whether it answers or is lost.
type probing struct {
	since time.Duration
	known bool
	lost  time.Duration // when the last loss that is in doubt began
	back  time.Duration // when it was back from the last loss
}

// Change is a new verdict, or the first one of a probing.
type Change struct {
	Node string
	Why  world.Unreachability
	// NotAnswering: the node does not answer, and nobody can say that it is dead, or that it stays so.
	NotAnswering bool
	// Silent is how long the host had been silent then.
	Silent time.Duration
}

// Look draws the conclusions at a time from the signs of all nodes that are probed, and returns what has become
// different. It has no earlier verdict on a node whose probing began since the last call, and returns its finding in
// any case: the caller waits for an answer. Beside them it is told when a witness answered last, or 0. It must be
// called several times in Total. A node that is not among them is forgotten; if it was unreachable or not answering, it
// is reported as neither.
func (j *Judge) Look(now time.Duration, signs map[string]Signs, witnessed time.Duration) []Change {
	var changes []Change
	if now-j.last > j.Total/4 {
		j.stalled = now + j.Total/2
	}
	if now < j.stalled || !j.othersAnswer(now, signs) {
		j.graceUntil = now + j.Total/2
	}
	j.last = now
	j.witnesses.noteAnswer(witnessed, j.Total)
	for name, s := range signs {
		was, first := j.recallProbing(name, s)
		old := j.verdicts[name]
		v := j.nextVerdict(old, s, now)
		if v.why == world.NodeUnreachable && old.why != v.why && now < j.graceUntil &&
			!j.provenDead(s, now, signs) {
			v = old
		}
		p := was.noteVerdict(old, v, now)
		p.known = s.hasAnswered() && now-s.Host < j.Total || v.why == world.NodeUnreachable && now-p.lost >= comeback
		if first || v.why != old.why || p.known != was.known {
			changes = append(changes, Change{name, v.why, !p.known, now - s.Host})
		}
		j.keepVerdict(name, v, p)
	}
	j.cutOff = j.isCutOff(now, signs)
	return append(changes, j.forgetUnprobed(signs)...)
}

// recallProbing is what was found of a node whose probing goes on. Of one that begins nothing is left.
func (j *Judge) recallProbing(node string, s Signs) (was probing, first bool) {
	was, is := j.probed[node]
	if is && was.since == s.Since {
		return was, false
	}
	delete(j.verdicts, node)
	return probing{since: s.Since, back: s.Since - steady}, true
}

// noteVerdict notes a loss, or a return.
func (p probing) noteVerdict(old, v verdict, now time.Duration) probing {
	was, is := old.why == world.NodeUnreachable, v.why == world.NodeUnreachable
	switch {
	case was && !is:
		p.back = now
	case is && !was && now-p.back >= steady:
		p.lost = now
	}
	return p
}

// forgetUnprobed is told which nodes are probed still.
func (j *Judge) forgetUnprobed(signs map[string]Signs) (changes []Change) {
	for name, p := range j.probed {
		if _, probed := signs[name]; probed {
			continue
		}
		if j.verdicts[name].why != "" || !p.known {
			changes = append(changes, Change{Node: name})
		}
		delete(j.verdicts, name)
		delete(j.probed, name)
	}
	return changes
}

func (j *Judge) keepVerdict(node string, v verdict, p probing) {
	if j.probed == nil {
		j.probed = map[string]probing{}
	}
	j.probed[node] = p
	switch {
	case v.why == "":
		delete(j.verdicts, node)
	case j.verdicts == nil:
		j.verdicts = map[string]verdict{node: v}
	default:
		j.verdicts[node] = v
	}
}

// CutOff says whether nobody at all had answered at the last look, though somebody else is probed.
func (j *Judge) CutOff() bool { return j.cutOff }

// Silent lists the nodes that are dead.
func (j *Judge) Silent() map[string]bool {
	out := map[string]bool{}
	for name, v := range j.verdicts {
		if v.why == world.NodeUnreachable {
			out[name] = true
		}
	}
	return out
}

// nextVerdict is what follows from one node's signs alone.
func (j *Judge) nextVerdict(old verdict, s Signs, now time.Duration) verdict {
	silent := now-s.Host >= j.hostPatience(s)
	switch {
	case old.why == world.NodeUnreachable && silent, old.why == world.AgentAway && !silent && s.Agent <= old.since:
		return old
	case silent:
		return verdict{world.NodeUnreachable, now}
	case old.why == world.NodeUnreachable && j.Agents && s.Agent <= old.since:
		return verdict{world.AgentAway, old.since} // the agent has not answered since the node was lost
	case old.why == "" && j.Agents && now-s.Agent >= j.agentGrace(s):
		return verdict{world.AgentAway, now}
	case old.why == "":
		return old
	}
	return verdict{"", now}
}

// hostPatience is for how long a host may be silent.
func (j *Judge) hostPatience(s Signs) time.Duration {
	if s.hasAnswered() {
		return j.Total
	}
	return debut * j.Total
}

// agentGrace is for how long an agent may be silent whose host answers.
func (j *Judge) agentGrace(s Signs) time.Duration {
	if s.agentAnswered() {
		return j.Grace
	}
	return debut * j.Grace
}

// provenDead says whether it is a node that is dead, and not this host that is cut off, by what witnesses say.
func (j *Judge) provenDead(s Signs, now time.Duration, signs map[string]Signs) bool {
	return now >= j.stalled && j.witnesses.contradictsNode(s.Host, now, j.Total) && !j.anyDirect(now, signs)
}

// anyDirect says whether any other node answers at its address on the primary network.
func (j *Judge) anyDirect(now time.Duration, signs map[string]Signs) bool {
	for name, s := range signs {
		if name != j.Self && s.Direct > s.Since && now-s.Direct < j.Total {
			return true
		}
	}
	return false
}

// othersAnswer says whether any other node answered lately.
func (j *Judge) othersAnswer(now time.Duration, signs map[string]Signs) bool {
	for name, s := range signs {
		if name != j.Self && s.hasAnswered() && now-s.Host < j.Total/2 {
			return true
		}
	}
	return false
}

func (j *Judge) isCutOff(now time.Duration, signs map[string]Signs) bool {
	others, last := 0, time.Duration(0)
	for name, s := range signs {
		if name == j.Self {
			continue
		}
		if others++; now-s.Host < j.Total {
			return false
		}
		last = max(last, s.Host)
	}
	return others > 0 && now >= j.stalled && !j.provenDead(Signs{Host: last}, now, signs)
}
