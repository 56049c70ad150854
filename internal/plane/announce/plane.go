package announce

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// repeats are the times after the first announcement; every is how often it is repeated after the last of them.
var repeats = []time.Duration{100 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second}

const every = time.Minute

// Where an announcement is later than standstill, this process was stopped, or had no processor, and its addresses may
// be another node's by now. Within patience it learns that, and a plan without them ends the announcements.
const (
	standstill = 10 * time.Second
	patience   = 5 * time.Second
)

// ethernet is the length of a hardware address.
const ethernet = 6

// Plane announces and repeats until its context is done.
type Plane struct {
	sender Sender
	log    *slog.Logger
	wake   chan struct{}

	mu   sync.Mutex
	held map[plan.Announcement]*schedule
	told map[plan.Announcement]*schedule // of no plan; they are repeated as often as repeats has it
}

var _ plane.Plane = (*Plane)(nil)

// schedule is when an announcement was first made and how often since.
type schedule struct {
	first time.Time
	sent  int
	err   error // of the last attempt
}

// nextTime is when to announce again.
func (s *schedule) nextTime() time.Time {
	if i := s.sent - 1; i < len(repeats) {
		return s.first.Add(repeats[i])
	}
	return s.first.Add(repeats[len(repeats)-1] + time.Duration(s.sent-len(repeats))*every)
}

// isDue says whether it is time. An announcement that is later than standstill is put off until patience is over.
func (s *schedule) isDue(now time.Time) bool {
	late := now.Sub(s.nextTime())
	if late > standstill {
		s.first = s.first.Add(late + patience)
	}
	return late >= 0 && late <= standstill
}

// isOver says whether all repeats were made.
func (s *schedule) isOver() bool { return s.sent > len(repeats) }

// New is a plane that repeats until ctx is done. sender is Links{}.
func New(ctx context.Context, sender Sender, log *slog.Logger) *Plane {
	p := &Plane{sender: sender, log: log, wake: make(chan struct{}, 1), held: map[plan.Announcement]*schedule{}}
	go p.repeatLoop(ctx)
	return p
}

func (p *Plane) Name() string { return "announce" }

// Grow announces what is new. One that cannot be sent is refused and tried again with the repetitions.
func (p *Plane) Grow(_ context.Context, want *plan.State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, a := range sortedRows(want.Announcements) {
		s, ok := p.held[a]
		if !ok {
			s = &schedule{first: time.Now(), sent: 1}
			s.err = p.sendAnnouncement(a)
			p.held[a] = s
		}
		if s.err != nil {
			errs = append(errs, &plane.Refused{Plane: p.Name(), Owner: want.Announcements.Owner(a), Row: a.IP.String(),
				Err: s.err})
		}
	}
	p.wakeRepeater()
	return errors.Join(errs...)
}

// wakeRepeater has repeat look when the next announcement is due.
func (p *Plane) wakeRepeater() {
	plane.SignalOnce(p.wake)
}

// Shrink stops repeating what want does not have.
func (p *Plane) Shrink(_ context.Context, want *plan.State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for a := range p.held {
		if _, ok := want.Announcements[a]; !ok {
			delete(p.held, a)
		}
	}
	return nil
}

// Forget makes the next Grow announce what could not be announced the last time. For the others nothing can be read
// again. An agent that stood still forgets what it held as soon as it goes on, with its old plan, and then announces by
// the schedules alone.
func (p *Plane) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.held, func(_ plan.Announcement, s *schedule) bool { return s.err != nil })
}

// repeatLoop sleeps until the next announcement is due, or until there are new ones.
func (p *Plane) repeatLoop(ctx context.Context) {
	for {
		timer := time.NewTimer(p.sendDue(time.Now()))
		select {
		case <-timer.C:
		case <-p.wake:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// sendDue makes the announcements that are due and returns how long there is nothing to do.
func (p *Plane) sendDue(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait := every
	for a, s := range p.held {
		if s.isDue(now) {
			p.sendAgain(a, s)
		}
		wait = min(wait, s.nextTime().Sub(now))
	}
	for a, s := range p.told {
		if !s.isOver() && s.isDue(now) {
			p.logFailure(a, p.sender.Send(a))
			s.sent++
		}
		if !s.isOver() {
			wait = min(wait, s.nextTime().Sub(now))
		}
	}
	return wait
}

func (p *Plane) sendAgain(a plan.Announcement, s *schedule) {
	err := p.sendAnnouncement(a)
	if err != nil && s.err == nil {
		p.log.Warn("cannot announce", "ip", a.IP, "dev", a.Dev, "err", err)
	}
	s.sent++
	s.err = err
}

// sendAnnouncement asks before it tells, for the answer to come.
func (p *Plane) sendAnnouncement(a plan.Announcement) error {
	if mac, err := net.ParseMAC(a.MAC); err != nil || len(mac) != ethernet || plane.CheckDevice(a.Dev) != nil {
		return fmt.Errorf("%q on device %q cannot announce an address", a.MAC, a.Dev)
	}
	return errors.Join(p.sender.Probe(a), p.sender.Send(a))
}

// Defend announces an address now, out of turn (RFC 5227 2.4), and asks who else has it. One that is not announced is
// left alone.
func (p *Plane) Defend(ip netip.Addr) { p.eachHeld(ip, p.sendAnnouncement) }

// Tell is given all addresses that are here and in no plan. Those that it was not given the last time are announced,
// now and a few times more; others no longer.
func (p *Plane) Tell(all []plan.Announcement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	former := p.told
	p.told = make(map[plan.Announcement]*schedule, len(all))
	for _, a := range all {
		s, is := former[a]
		if !is {
			p.logFailure(a, p.sender.Send(a))
			s = &schedule{first: time.Now(), sent: 1}
		}
		p.told[a] = s
	}
	p.wakeRepeater()
}

// Probe asks who else has an address, announced here or not yet.
func (p *Plane) Probe(a plan.Announcement) { p.logFailure(a, p.sender.Probe(a)) }

func (p *Plane) eachHeld(ip netip.Addr, do func(plan.Announcement) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for a := range p.held {
		if a.IP != ip {
			continue
		}
		p.logFailure(a, do(a))
	}
}

func (p *Plane) logFailure(a plan.Announcement, err error) {
	if err != nil {
		p.log.Warn("cannot announce", "ip", a.IP, "dev", a.Dev, "err", err)
	}
}

func sortedRows(t plan.Table[plan.Announcement, plan.None]) []plan.Announcement {
	var out []plan.Announcement
	for a := range t.Rows() {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b plan.Announcement) int {
		return strings.Compare(a.Dev+" "+a.IP.String()+" "+a.MAC, b.Dev+" "+b.IP.String()+" "+b.MAC)
	})
	return out
}
