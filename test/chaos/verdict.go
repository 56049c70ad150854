package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/egret-net/egret/test/oracle"
	"github.com/egret-net/egret/test/traffic"
)

const (
	// settled is how long what happened leaves traces: whom a pod's EgressIP was, what nodes hold.
	settled = 30 * time.Second
	// aftermath is how long after its end a fault explains what is lost by those that it touched, and two answers.
	aftermath = 15 * time.Second
	// before a fault's beginning is logged it has begun.
	before = 500 * time.Millisecond
)

// window is a time in which something happened.
type window struct {
	fault
	begin, end time.Time
}

func (w window) overlaps(from, to time.Time) bool {
	return !to.Before(w.begin.Add(-before)) && !from.After(w.end.Add(aftermath))
}

// change is a value from a time on: that in which it was asked for.
type change[T any] struct {
	asked, done time.Time
	value       T
}

// history are the values that something had, in their order.
type history[T any] []change[T]

// at are the values that count at a time: the last, and those that were replaced a short time ago.
func (h history[T]) at(t time.Time) []T {
	var out []T
	for i, c := range h {
		if c.asked.After(t) || i+1 < len(h) && !h[i+1].done.IsZero() && h[i+1].done.Add(settled).Before(t) {
			continue
		}
		out = append(out, c.value)
	}
	return out
}

func (h history[T]) last() T { return h[len(h)-1].value }

type addresses = []netip.Addr

// sender is a pod that sends.
type sender struct {
	name, node string
	// group names the EgressIP or the EgressService that serves it; "" is none: it leaves with its node's address.
	group history[string]
}

// record is all that was seen of a run.
type record struct {
	senders   map[string]*sender
	nodes     map[string]addresses         // by node
	addresses map[string]addresses         // by EgressIP, as last asked for
	mayHave   map[netip.Addr][]string      // the EgressIPs that have an address now or later, by it
	holders   map[string]history[[]string] // nodes that status named, by EgressIP
	windows   []window
	seen      []traffic.Sighting
	answers   []traffic.Answer
}

// last are the addresses that a pod may have once everything has taken effect.
func (r *record) last(s *sender) addresses {
	switch group := s.group.last(); group {
	case "":
		return r.nodes[s.node]
	case byTraffic: // to one of two destinations, and to the other
		return append(slices.Clone(r.nodes[s.node]), r.addresses[group]...)
	default:
		return r.addresses[group]
	}
}

// wrong are the packets that had no right source, in sentences, and their number. judge says what would have been
// right, or "".
func (r *record) wrong(judge func(oracle.Packet) string) (found []string, packets int) {
	type run struct{ pod, kind, src, right string }
	first, last, count := map[run]traffic.Sighting{}, map[run]traffic.Sighting{}, map[run]int{}
	var order []run
	for _, x := range r.seen {
		if r.senders[x.Pod] == nil {
			continue
		}
		right := judge(oracle.Packet{At: x.At, Pod: namespace + "/" + x.Pod, Src: x.Src, Dst: x.Dst})
		if right == "" {
			continue
		}
		k := run{x.Pod, x.Kind, x.Src.String(), right}
		if count[k]++; count[k] == 1 {
			first[k], order = x, append(order, k)
		}
		last[k] = x
		packets++
	}
	for _, k := range order {
		found = append(found, fmt.Sprintf("%d %s packets of %s on %s had source %s, number %d at %s to number %d at %s; "+
			"right was %s", count[k], k.kind, k.pod, r.senders[k.pod].node, k.src, first[k].Number,
			clock(first[k].At), last[k].Number,
			clock(last[k].At), k.right))
	}
	return found, packets
}

// lost are the packets that pods lost while nothing was done to them, in sentences, and their number; excused are those
// of pods that were touched.
func (r *record) lost() (found []string, packets, excused int) {
	last := map[traffic.Flow]traffic.Sighting{}
	for _, x := range r.seen {
		s, was := r.senders[x.Pod], last[x.Flow()]
		last[x.Flow()] = x
		missing := x.Number - was.Number - 1
		switch {
		case s == nil || was.Pod == "" || missing <= 0:
		case r.touched(s, was.At, x.At):
			excused += missing
		default:
			packets += missing
			found = append(found, fmt.Sprintf("%d %s packets of %s on %s to %s, source %s, between %s and %s",
				missing, x.Kind, x.Pod, s.node, x.Dst, x.Src, clock(was.At), clock(x.At)))
		}
	}
	return found, packets, excused
}

func (r *record) touched(s *sender, from, to time.Time) bool {
	return slices.ContainsFunc(r.windows, func(w window) bool { return w.overlaps(from, to) && r.touches(w, s) })
}

// touches says whether a fault concerned a pod: its node, a node that held one of its addresses, its EgressIP or
// itself. The API server is on nobody's way, and a kill of what is on no packet's way concerns no pod.
func (r *record) touches(w window, s *sender) bool {
	if w.sparesTraffic() {
		return false
	}
	if w.node == s.node && w.node != "" || w.object == s.name {
		return true
	}
	return w.someTime(func(at time.Time) bool {
		return slices.ContainsFunc(s.group.at(at), func(group string) bool {
			return group != "" && r.concerns(w, group, at)
		})
	})
}

// someTime reports whether something is so at a time from the fault's beginning until its traces are gone.
func (w window) someTime(so func(at time.Time) bool) bool {
	for at := w.begin.Add(-before); !at.After(w.end.Add(aftermath)); at = at.Add(time.Second) {
		if so(at) {
			return true
		}
	}
	return false
}

// concerns reports whether a fault is about an EgressIP or EgressService, or about a node that its status named.
func (r *record) concerns(w window, object string, at time.Time) bool {
	return w.about(object) || w.node != "" && slices.ContainsFunc(r.holders[object].at(at), func(nodes []string) bool {
		return slices.Contains(nodes, w.node)
	})
}

// twice are the questions who has an address that two machines answered, in sentences, while nothing happened that
// moves it; excused is the number of those that a fault explains, and late how long after its end the last was.
func (r *record) twice(every time.Duration) (found []string, excused int, late time.Duration) {
	type answered struct {
		mac string
		at  time.Time
	}
	last := map[netip.Addr][]answered{}
	for _, a := range r.answers {
		recent := slices.DeleteFunc(last[a.IP],
			func(x answered) bool { return x.mac == a.MAC || a.At.Sub(x.at) > every/2 })
		last[a.IP] = append(recent, answered{a.MAC, a.At})
		if len(recent) == 0 {
			continue
		}
		if after, explained := r.explained(a); explained {
			excused, late = excused+1, max(late, after)
			continue
		}
		found = append(found, fmt.Sprintf("%s: %s and %s at %s", a.IP, recent[0].mac, a.MAC, clock(a.At)))
	}
	return found, excused, late
}

// explained says whether a fault moved an answer's address, and how long after the end of the last one that was.
func (r *record) explained(a traffic.Answer) (after time.Duration, explained bool) {
	for _, w := range r.windows {
		if w.overlaps(a.At, a.At) && r.moves(w, a.IP) && (!explained || a.At.Sub(w.end) < after) {
			after, explained = a.At.Sub(w.end), true
		}
	}
	return after, explained
}

// offTheWay are the processes that run no part of a pod's way.
var offTheWay = []string{"egret-controller", "containerd", "kubelet"}

// recovery is how long after a fault's end its node has not followed the API yet; behind is false where it follows all
// the time.
func (f fault) recovery() (after time.Duration, behind bool) {
	switch f.kind {
	case power, fullDisk:
		return aftermath, true
	case cutAPI, cutFabric, cutBoth, noAPI:
		return 5 * time.Second, true
	case kill, freeze, stop:
		return 5 * time.Second, !slices.Contains(offTheWay, f.object)
	}
	return 0, false
}

// sparesTraffic reports whether a fault costs no packet and moves no address. No packet needs a controller, and another
// one decides meanwhile. A kubelet or containerd that is killed starts again before Kubernetes misses its node. One
// that is frozen or stopped is missed.
func (f fault) sparesTraffic() bool {
	return f.object == "egret-controller" || f.kind == kill && slices.Contains(offTheWay, f.object)
}

// moves says whether a fault moves an address: it is about an EgressIP that may have it, or about its node.
func (r *record) moves(w window, ip netip.Addr) bool {
	if w.sparesTraffic() {
		return false
	}
	switch w.kind {
	case recreate, relabel, retraffic, noAPI:
		return false
	}
	return w.someTime(func(at time.Time) bool {
		return slices.ContainsFunc(r.mayHave[ip], func(name string) bool { return r.concerns(w, name, at) })
	})
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// grown are the numbers that are not what they were, in sentences. What the kernel gives a program of Go as memory is
// never all given back, so that it may grow by slack more; a program that was started anew has less.
func grown(was, now map[string]float64) []string {
	const part = 0.05
	var out []string
	for name, old := range was {
		least, most, slack := old*(1-part), old*(1+part), 3.0
		if strings.HasPrefix(name, "memory") {
			slack = 8 << 20
		}
		if !strings.HasPrefix(name, "rows") && !strings.HasPrefix(name, "flows") {
			least = 0
		}
		if have := now[name]; have < least-slack || have > most+slack {
			out = append(out, fmt.Sprintf("%s was %.0f, is %.0f", name, old, have))
		}
	}
	slices.Sort(out)
	return out
}
