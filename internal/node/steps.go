package node

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/clearance"
	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/tunnel"
	"github.com/egret-net/egret/internal/world"
)

// Surroundings replace host, clock, goroutines and I/O for an agent that its owner drives.
type Surroundings struct {
	Node, BootID string
	Config       *world.Config
	Host         *world.Host
	// Held and Attachments are what a former process of this boot left.
	Held        *plan.State
	Attachments []*world.Attachment
	Target      plane.Plane
	Early       plane.Plane // what of the target is grown before the cluster is known
	Confirmed   func() bool
	SetPaused   func(hostIface string, paused bool)
	API         Kubernetes
	Now         func() time.Time
	// Latency is how long a write to the API server is under way.
	Latency time.Duration
	// Started is told that a pod's ADD is over; with an error it is undone.
	Started func(*world.Attachment, error)
	// Ask asks the agent of another node whether it has followed what has been seen here.
	Ask func(node string, seen map[string]string, answered func(newest map[string]string, err error))
	// Announce tells the link that this node has an address, and Probe asks who has it. Hear brings what others say.
	Announce func(netip.Addr)
	Probe    func(plan.Announcement)
	Renew    func() // the ARP reply lease
}

// Kubernetes is the API server of an agent that its owner drives.
type Kubernetes interface {
	Report(*egretv1.EgressNode) (*egretv1.EgressNode, error)
	Annotate(map[string]string) (*corev1.Node, error)
	// EgressIP returns one as it is now, nil without an error if it does not exist.
	EgressIP(name string) (*v1.EgressIP, error)
	// CatchUp shows what a starting pod's node asks for, as it is now.
	CatchUp(namespace string, source *kube.Source) error
	Silence() time.Duration
}

// Steps drives an agent without goroutines, for simulations of many: its owner makes each step, and says what time it
// is. Followers of the host are not there, and pods that have completed keep their addresses.
type Steps struct {
	a         *Agent
	o         Surroundings
	tunnels   tunnel.Machine
	alone     bool
	synced    bool
	timeIsUp  time.Time // for the loop's targets
	outgoing  []*outgoing
	starting  []*starting
	chores    []func() // that have begun
	questions []*peerQuestion
	sessions  []tunnel.Session
	tunnelsAt time.Time
}

// outgoing is a mailbox whose value is delivered at a time; zero: there is nothing to do.
type outgoing struct {
	wake <-chan struct{}
	once func(context.Context) time.Duration
	at   time.Time
}

// NewSteps starts an agent.
func NewSteps(o Surroundings) *Steps {
	a := newAgent(o.Node, o.Config, all.ServedKinds(), slog.New(slog.DiscardHandler))
	s := &Steps{a: a, o: o}
	a.source = kube.NewSource(nil, a.log, kube.FollowedBy(o.Node, a.kinds.AllResources()...)...)
	a.api = &API{Node: o.Node, BootID: o.BootID, Version: "simulated", Observe: a.source.Observe,
		ReadNow: a.source.ReadNow, BeginRead: a.source.BeginRead}
	a.publisher = newPublisher(o.Node, a.source, s.writeReport, s.writeAnnotations, a.log)
	s.outgoing = []*outgoing{drivenMailbox(a.publisher.reports, o.Now), drivenMailbox(a.publisher.annotations, o.Now)}
	h := a.holding
	h.watch, h.announce, h.probe = func(map[netip.Addr]string, []string) {}, o.Announce, o.Probe
	h.silence = o.API.Silence
	h.ask = s.askEgressIP
	a.setPaused = func(_ context.Context, hostIface string, paused bool) error {
		o.SetPaused(hostIface, paused)
		return nil
	}
	a.chores.start = func(do func()) { s.chores = append(s.chores, do) }
	a.clearing.send = func(q clearance.Question, _ netip.Addr, _ netip.AddrPort, answered func(error)) {
		o.Ask(q.Node, a.source.Seen(), func(newest map[string]string, err error) {
			if err == nil && !a.source.HasReached(newest) && o.API.Silence() < kube.Silent {
				err = errOtherHistory
			}
			answered(err)
		})
	}
	a.clearing.pastLists = a.source.SeenPods
	a.confirmed, a.loop.now, a.loop.lastRead = o.Confirmed, o.Now, o.Now()
	a.loop.Planes, a.loop.Early = []plane.Plane{o.Target}, []plane.Plane{o.Early}
	s.adoptFormer()
	return s
}

func drivenMailbox[T any](m *mailbox[T], now func() time.Time) *outgoing {
	m.now, m.pace = now, rate.NewLimiter(rate.Inf, 0)
	return &outgoing{wake: m.wake, once: m.deliverDue}
}

// adoptFormer takes in what a former process left.
func (s *Steps) adoptFormer() {
	filter := formerFilter{known: true, pods: map[netip.Addr]bool{}}
	for e := range s.o.Held.NFTElems.Rows() {
		if ip, err := netip.ParseAddr(e.Key); err == nil && egress.IsLeakFilter(e.Set) {
			filter.pods[ip] = true
		}
	}
	s.a.loop.Do(func(w *world.World) { w.SetHost(s.o.Host) })
	for _, at := range s.o.Attachments {
		adopted := filter.adoptAttachment(*at)
		s.a.loop.Do(func(w *world.World) { w.SetAttachment(adopted) })
	}
	var rows []plan.RowID
	for id := range s.o.Held.NB.Rows() {
		if id.Table == "NAT" {
			rows = append(rows, id)
		}
	}
	s.readLed()
	var sets []string
	for set := range s.o.Held.NFTSets.Rows() {
		sets = append(sets, set.Name)
	}
	s.a.loop.Do(func(*world.World) {
		s.a.holding.adoptRows(rows, sets, s.o.Config.Bridge, s.o.Host)
	})
}

func (s *Steps) writeReport(_ context.Context, r Report) (string, error) {
	o := r.egressNode(s.o.Node, s.o.BootID, s.a.api.Version)
	stored, err := s.o.API.Report(o)
	if err != nil {
		return "", err
	}
	return stored.ResourceVersion, s.a.source.Observe(stored)
}

func (s *Steps) writeAnnotations(_ context.Context, annotations map[string]string) (string, error) {
	stored, err := s.o.API.Annotate(annotations)
	if err != nil {
		return "", err
	}
	return stored.ResourceVersion, s.a.source.Observe(stored)
}

// askEgressIP is API.EgressIP.
func (s *Steps) askEgressIP(_ context.Context, name string) (*world.EgressIP, error) {
	e, err := s.o.API.EgressIP(name)
	if e == nil || err != nil {
		return nil, err
	}
	return kube.EgressIP(e), s.a.source.Observe(e)
}

// Source is what the agent follows; its owner fills the stores of it.
func (s *Steps) Source() *kube.Source { return s.a.source }

// Confirmed tells that what the target holds has taken effect.
func (s *Steps) Confirmed() { s.a.loop.Confirmed() }

// Ask shows the agent's world.
func (s *Steps) Ask(question func(*world.World)) { question(s.a.loop.world) }

// Tunnels takes in the sessions with other nodes as they are now.
func (s *Steps) Tunnels(sessions []tunnel.Session) {
	s.sessions, s.tunnelsAt = sessions, s.o.Now()
}

// Step takes in what has come, and makes the rounds that are due. It returns when to step again though nothing comes.
func (s *Steps) Step() (again time.Time) {
	s.lookAtTunnels()
	for s.isDue() {
		if pause := s.a.loop.runTurn(context.Background()); pause > 0 {
			s.timeIsUp = s.o.Now().Add(pause)
		}
		s.carryOut()
		s.goOnStarting()
	}
	again = earliestOf(s.timeIsUp, s.a.loop.again, s.tunnelsAt)
	for _, m := range s.outgoing {
		again = earliestOf(again, s.deliverDue(m))
	}
	for _, x := range s.starting {
		again = earliestOf(again, x.until)
	}
	return again
}

// isDue says whether the loop has a round to make.
func (s *Steps) isDue() bool {
	s.takeChanges()
	now, l := s.o.Now(), s.a.loop
	if !s.timeIsUp.IsZero() && !now.Before(s.timeIsUp) {
		s.timeIsUp = time.Time{}
		l.timeIsUp()
		l.wakeUp()
	}
	if !l.again.IsZero() && !now.Before(l.again) || s.patienceIsOver() {
		l.wakeUp()
	}
	select {
	case <-l.wake:
		return true
	default:
		return false
	}
}

// readLed is clearing.readLed.
func (s *Steps) readLed() {
	var elems []plan.SetElem
	for e := range s.o.Held.SetElems.Rows() {
		elems = append(elems, e)
	}
	hops := map[plan.RowID][]string{}
	for id, r := range s.o.Held.NB.Rows() {
		if id.Table == plan.TablePolicy {
			hops[id] = r.Cols["nexthops"].([]string)
		}
	}
	led := parseLed(elems, hops)
	s.a.loop.Do(func(*world.World) { s.a.clearing.former = led })
}

// takeChanges brings the cluster into the loop.
func (s *Steps) takeChanges() {
	for len(s.a.source.Changes()) > 0 {
		s.a.loop.Do(Change(<-s.a.source.Changes()))
	}
	if !s.synced && s.a.source.Synced() {
		s.synced = true
		s.a.beginActing()
	}
}

var errOtherHistory = errors.New("it has seen more than this agent")

// peerQuestion is one of another agent that is not answered yet.
type peerQuestion struct {
	seen   kube.Versions
	answer func(newest map[string]string)
	round  uint64 // that it waits for, once the world has what was seen
}

// Followed has the agent answer another one when it has followed what that has seen.
func (s *Steps) Followed(seen map[string]string, answer func(newest map[string]string)) {
	s.questions = append(s.questions, &peerQuestion{seen: seen, answer: answer})
	s.a.loop.wakeUp()
}

// Hear takes in that another machine says it has an address.
func (s *Steps) Hear(c holder.Claim) {
	s.a.loop.Do(func(*world.World) { s.a.holding.facts.Claims = append(s.a.holding.facts.Claims, c) })
}

// answerDue answers what can be answered.
func (s *Steps) answerDue() {
	var left []*peerQuestion
	for _, x := range s.questions {
		if x.round == 0 && s.a.source.HasReached(x.seen) {
			s.takeChanges()
			x.round = s.offerChange(noChange)
		}
		if x.round > 0 && s.a.loop.done >= x.round {
			x.answer(s.a.source.Newest())
		} else {
			left = append(left, x)
		}
	}
	s.questions = left
}

// carryOut does what the loop leaves to others.
func (s *Steps) carryOut() {
	s.answerDue()
	for len(s.chores) > 0 {
		do := s.chores[0]
		s.chores = s.chores[1:]
		do()
	}
	h := s.a.holding
	for len(h.renewals) > 0 {
		<-h.renewals
		s.o.Renew()
	}
	h.sending.sendAll(h.announce, h.probe)
	for len(h.questions) > 0 {
		h.askEach(context.Background(), <-h.questions)
	}
}

func (s *Steps) lookAtTunnels() {
	if now := s.o.Now(); !s.tunnelsAt.IsZero() && !now.Before(s.tunnelsAt) {
		r := s.tunnels.Step(s.sessions, now)
		s.a.tunnelsChange(context.Background(), r, s.alone)
		s.alone, s.tunnelsAt = r.Alone, r.Wake
	}
}

// deliverDue delivers what is due, and returns when to look again.
func (s *Steps) deliverDue(m *outgoing) time.Time {
	now := s.o.Now()
	select {
	case <-m.wake:
		m.at = earliestOf(m.at, now.Add(s.o.Latency))
	default:
	}
	if !m.at.IsZero() && !now.Before(m.at) {
		m.at = now.Add(m.once(context.Background()))
	}
	return m.at
}

// starting is an ADD under way.
type starting struct {
	at    *world.Attachment
	round uint64    // that it waits for; 0: for a holder
	until time.Time // how long for that
	last  bool      // then it is over
}

// Attach begins what Agent.attachPod does.
func (s *Steps) Attach(at *world.Attachment) {
	s.offerChange(func(w *world.World) { w.SetAttachment(at) })
	if err := cmp.Or(s.o.API.CatchUp(at.Namespace, s.a.source), s.a.source.CheckListed()); err != nil {
		s.Detach(at.HostIface)
		s.o.Started(at, err)
		return
	}
	s.takeChanges()
	s.starting = append(s.starting, &starting{at: at, round: s.offerChange(noChange)})
}

func noChange(*world.World) {}

func (s *Steps) offerChange(c Change) uint64 {
	round, err := s.a.loop.offerChange(context.Background(), c)
	if err != nil {
		panic(err) // nothing ends that context
	}
	return round
}

// Detach is CNI DEL.
func (s *Steps) Detach(hostIface string) {
	for i, x := range s.starting {
		if x.at.HostIface == hostIface {
			s.starting = append(s.starting[:i:i], s.starting[i+1:]...)
			break
		}
	}
	_ = s.a.Detached(context.Background(), hostIface) // its only error is that the context ends
}

func (s *Steps) patienceIsOver() bool {
	for _, x := range s.starting {
		if !x.until.IsZero() && !s.o.Now().Before(x.until) {
			return true
		}
	}
	return false
}

// goOnStarting has each ADD go on that has what it waits for.
func (s *Steps) goOnStarting() {
	var left []*starting
	for _, x := range s.starting {
		if s.goOn(x); x.last && s.a.loop.done >= x.round {
			s.o.Started(x.at, nil)
		} else {
			left = append(left, x)
		}
	}
	s.starting = left
}

func (s *Steps) goOn(x *starting) {
	if x.round > 0 && s.a.loop.done >= x.round && !x.last {
		x.round, x.until = 0, s.o.Now().Add(egressWait)
	}
	if x.round > 0 {
		return
	}
	switch {
	case s.a.kinds.AwaitedObject(&s.a.loop.world.View, x.at.Key()) == (ref.Object{}):
		x.round, x.last, x.until = s.offerChange(noChange), true, time.Time{}
	case !s.o.Now().Before(x.until):
		paused := *x.at
		paused.EgressPaused = true
		s.o.SetPaused(x.at.HostIface, true)
		x.at = &paused
		x.round = s.offerChange(func(w *world.World) { w.SetAttachment(&paused) })
		x.last, x.until = true, time.Time{}
	}
}
