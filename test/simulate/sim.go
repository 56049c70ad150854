package simulate

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// begin is when each run begins.
var begin = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Sim is one run.
type Sim struct {
	seed  uint64
	now   time.Time
	queue queue
	count int

	config      *world.Config
	api         *api
	verdict     *verdict
	machines    map[string]*machine // by the names of their Nodes
	all         []*machine
	controllers []*controllerOn
	pods        map[string]*pod // by "namespace/name"
	networks    map[string]int  // their numbers, by the namespaces that have one of their own
	pace        Pace
	drawn       map[string]int
	reuse       time.Duration // how long an address of a pod rests at least before another gets it
	tellsApart  bool          // there is, or was, an EgressIPTraffic
}

// Pace says how slow what is under way is at most.
type Pace struct {
	Watch, Write, OVN time.Duration
}

// event is what happens at a time.
type event struct {
	at    time.Time
	count int
	do    func()
}

// queue is a heap of events; of those at one time the first that was planned comes first.
type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at.Before(q[j].at) || q[i].at.Equal(q[j].at) && q[i].count < q[j].count
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push and Pop are the heap's.
func (q *queue) Push(x any) { *q = append(*q, x.(event)) }

// Pop takes the last one.
func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

// at plans an event.
func (s *Sim) at(t time.Time, do func()) {
	if t.Before(s.now) {
		t = s.now
	}
	s.count++
	heap.Push(&s.queue, event{t, s.count, do})
}

func (s *Sim) after(d time.Duration, do func()) { s.at(s.now.Add(d), do) }

// every repeats something from now on.
func (s *Sim) every(d time.Duration, do func()) {
	s.after(d, func() {
		do()
		s.every(d, do)
	})
}

// run lets time pass.
func (s *Sim) run(until time.Time) {
	for len(s.queue) > 0 && !s.queue[0].at.After(until) && s.verdict.wrong == "" {
		e := heap.Pop(&s.queue).(event)
		s.now = e.at
		e.do()
		s.verdict.look()
	}
	s.now = until
}

// elapsed is the time since the run began.
func (s *Sim) elapsed() time.Duration { return s.now.Sub(begin) }

// within draws a time up to a most, by the seed, a name, and how often it was drawn for: what a story has more or less
// changes no other draw.
func (s *Sim) within(most time.Duration, name string) time.Duration {
	n := s.drawn[name]
	s.drawn[name]++
	h := fnv.New64a()
	fmt.Fprint(h, s.seed, " ", name, " ", n)
	x := h.Sum64()
	x ^= x >> 31
	slow := time.Duration(x % 1000)
	if x>>40%16 > 0 { // most are quick
		slow /= 20
	}
	return time.Millisecond + most*slow/1000
}

// process is one that can hang, be cut off from the API server, and end.
type process struct {
	s       *Sim
	alive   bool
	hangs   int // how often it was stopped, and not told to go on
	cut     bool
	step    func() (again time.Time)
	on      *machine
	planned time.Time // when it steps next
}

// wake has the process make a step now.
func (p *process) wake() { p.wakeAt(p.s.now) }

func (p *process) wakeAt(t time.Time) {
	if t.Before(p.s.now) {
		t = p.s.now
	}
	if !p.planned.IsZero() && !p.planned.After(t) {
		return
	}
	p.planned = t
	p.s.at(t, func() {
		if p.planned.Equal(t) && p.runs() {
			p.planned = time.Time{}
			if again := p.step(); !again.IsZero() {
				// a little later, else a deadline that has just not passed is met again
				p.wakeAt(p.s.now.Add(again.Sub(p.now()) + time.Microsecond))
			}
		}
	})
}

// now is what the process reads from its machine's clock.
func (p *process) now() time.Time { return reading(p.s.now, p.on.clockSet) }

func (p *process) runs() bool { return p.alive && p.hangs == 0 }

// reaches says whether the process reaches the API server.
func (p *process) reaches() bool { return p.runs() && !p.cut }

// goOn ends a hang.
func (p *process) goOn() {
	p.planned = time.Time{}
	p.wake()
}
