package node

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/listen"
	"github.com/egret-net/egret/internal/world"
)

// holding carries out what holder.Machine decides about this node's addresses, and keeps the facts for it. Machine
// and facts belong to the loop.
type holding struct {
	machine holder.Machine
	facts   holder.Facts

	// These carry out the machine's results. None of it is waited for.
	silence  func() time.Duration // of the API server
	ask      func(ctx context.Context, egressIP string) (*world.EgressIP, error)
	announce func(netip.Addr)
	probe    func(plan.Announcement)
	renew    func(context.Context) error // the ARP reply lease
	watch    func(own map[netip.Addr]string, devices []string)
	loop     *Loop
	log      *slog.Logger

	sending   *sending
	renewals  chan struct{} // one may wait
	questions chan []string // the machine has one list under way
}

func newHolding(self string, loop *Loop, log *slog.Logger) *holding {
	return &holding{machine: holder.Machine{Self: self}, loop: loop, log: log, sending: newSending(),
		renewals: make(chan struct{}, 1), questions: make(chan []string, 1)}
}

// runHolder brings claims into the loop, renews the lease and asks the API server until ctx ends. Packets of others
// never fill the loop's queue.
func (h *holding) runHolder(ctx context.Context, claims <-chan listen.Claim) {
	go forEachSignal(ctx, h.renewals, func() {
		if err := h.renew(ctx); err != nil && ctx.Err() == nil {
			const text = "could not renew the ARP reply lease: whoever announces an egress IP in 20 s gets it"
			h.log.Warn(text, "error", err)
		}
	})
	go h.askAll(ctx)
	go forEachSignal(ctx, h.sending.wake, func() { h.sending.sendAll(h.announce, h.probe) })
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-claims:
			received := []holder.Claim{holder.Claim(c)}
			for range len(claims) {
				received = append(received, holder.Claim(<-claims))
			}
			_ = h.loop.Turn(ctx, func(*world.World) { // its only error is that the agent ends
				h.facts.Claims = append(h.facts.Claims, received...)
			})
		}
	}
}

// stepMachine is one step of the machine, in the loop.
func (h *holding) stepMachine(w *world.World, now time.Time) (again time.Time) {
	h.facts.View, h.facts.APISilent = &w.View, h.silence() >= kube.Silent
	h.facts.NotSteered = func(c world.EgressAddress) string { return egressip.NotSteered(w, c.Object, c.IP) }
	r := h.machine.Step(h.facts, now)
	h.facts.Claims, h.facts.Answers, h.facts.Back = nil, nil, false
	for c, y := range r.Yields {
		w.SetYielded(c, y)
	}
	for c, node := range r.Overdue {
		w.SetOverdue(c, node)
	}
	h.carryOut(r)
	return r.Wake
}

func (h *holding) carryOut(r holder.Result) {
	for _, x := range r.Warnings {
		h.log.Warn(x.Text, x.Args...)
	}
	h.sending.queueSends(r.Announce, r.Probe)
	if len(r.Ask) > 0 {
		h.questions <- r.Ask
	}
	if r.Renew {
		select {
		case h.renewals <- struct{}{}:
		default: // vswitchd hangs
		}
	}
}

// askAll puts the machine's questions to the API server until ctx ends.
func (h *holding) askAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case names := <-h.questions:
			h.askEach(ctx, names)
		}
	}
}

// askEach asks about one EgressIP after the other, until there is no answer.
func (h *holding) askEach(ctx context.Context, names []string) {
	for i, name := range names {
		timed, cancel := context.WithTimeout(ctx, holder.AskTimeout)
		e, err := h.ask(timed, name)
		cancel()
		h.queueAnswer(holder.Answer{Name: name, EgressIP: e, Err: err, Last: i == len(names)-1})
		if err != nil {
			return
		}
	}
}

func (h *holding) queueAnswer(a holder.Answer) {
	h.loop.Do(func(*world.World) {
		h.facts.Answers = append(h.facts.Answers, a)
	})
}

// adoptRows takes in what a former process left in OVN, and in the host's sets for addresses on links. OVN and the
// kernel answer for it until the first plan. If the API server cannot be reached that may be long, and others may have
// been given it.
func (h *holding) adoptRows(rows []plan.RowID, sets []string, bridge string, on *world.Host) {
	left := &holder.Holds{Addresses: map[netip.Addr]holder.Held{}, Adopted: true}
	for _, r := range rows {
		if e, is := egressip.Adopted(r); is {
			a := plan.Announcement{Dev: bridge, IP: e.IP, MAC: on.UplinkMAC}
			left.Addresses[e.IP] = holder.Held{EgressIP: e.Object.Name, Announcement: a}
		}
	}
	for _, set := range sets {
		e, is := egressip.AdoptedOnLink(set)
		if !is {
			continue
		}
		if _, link := on.LinkFor(e.IP); link != nil {
			a := plan.Announcement{Dev: link.Name, IP: e.IP, MAC: link.MAC}
			left.Addresses[e.IP] = holder.Held{EgressIP: e.Object.Name, Announcement: a}
		}
	}
	h.takeHolds(left)
}

// takeGrown takes in what a plan announces, and whom it leads pods to ahead of a report, and its targets have.
func (h *holding) takeGrown(s *plan.State) {
	now, ahead := holder.HoldsOf(s), holder.AheadOf(s)
	if !maps.Equal(h.facts.Ahead, ahead) {
		h.facts.Ahead = ahead
		h.loop.Again()
	}
	was := h.facts.Holds
	if was != nil && !was.Adopted && maps.Equal(was.Addresses, now.Addresses) && maps.Equal(was.Shared, now.Shared) {
		return
	}
	h.takeHolds(now)
	h.loop.Again()
}

func (h *holding) takeHolds(x *holder.Holds) {
	h.facts.Holds = x
	own, devices := map[netip.Addr]string{}, []string(nil)
	for ip, held := range x.Addresses {
		own[ip] = held.Announcement.MAC
		if !slices.Contains(devices, held.Announcement.Dev) {
			devices = append(devices, held.Announcement.Dev)
		}
	}
	h.watch(own, devices)
}

// takeAlone takes in whether no other node answers.
func (h *holding) takeAlone(is bool) { h.facts.Alone = is }
