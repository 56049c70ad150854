package traffic

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sighting is one datagram of a sender, as it was on its way to a host outside.
type Sighting struct {
	At       time.Time
	Pod      string // the name that the sender was given
	Kind     string // new or old, see sender
	Number   int
	Src, Dst netip.Addr
}

// parse reads an Ethernet frame with a sender's datagram in it. What is inside a tunnel is none.
func parse(frame []byte) (Sighting, bool) {
	const ethernet, udp = 14, 17
	var s Sighting
	var segment []byte
	switch {
	case len(frame) > ethernet+28 && binary.BigEndian.Uint16(frame[12:]) == 0x0800 && frame[ethernet+9] == udp:
		ip := frame[ethernet:]
		s.Src, s.Dst = netip.AddrFrom4([4]byte(ip[12:])), netip.AddrFrom4([4]byte(ip[16:]))
		segment = ip[int(ip[0]&0xf)*4:]
	case len(frame) > ethernet+48 && binary.BigEndian.Uint16(frame[12:]) == 0x86dd && frame[ethernet+6] == udp:
		ip := frame[ethernet:]
		s.Src, s.Dst = netip.AddrFrom16([16]byte(ip[8:])), netip.AddrFrom16([16]byte(ip[24:]))
		segment = ip[40:]
	}
	if len(segment) < 8 || binary.BigEndian.Uint16(segment[2:]) != Port {
		return s, false
	}
	words := strings.Fields(string(segment[8:]))
	if len(words) != 4 || words[0] != "egret-e2e" {
		return s, false
	}
	var err error
	s.Pod, s.Kind = words[1], words[2]
	s.Number, err = strconv.Atoi(words[3])
	return s, err == nil
}

// Wrong counts datagrams by pod and source ("POD as SOURCE"), of pods whose name begins so, where the source is none of
// want.
func Wrong(all []Sighting, pods string, want []netip.Addr) map[string]int {
	out := map[string]int{}
	for _, s := range all {
		if strings.HasPrefix(s.Pod, pods) && !slices.Contains(want, s.Src) {
			out[s.Pod+" as "+s.Src.String()]++
		}
	}
	return out
}

// Flow is what gaps and losses are measured in: a pod's datagrams of a kind to one address.
type Flow struct {
	Pod, Kind string
	Dst       netip.Addr
}

// Flow is the one that a datagram is of.
func (s Sighting) Flow() Flow { return Flow{s.Pod, s.Kind, s.Dst} }

// Loss is what did not arrive in a time.
type Loss struct {
	Gap   time.Duration // the longest between two datagrams of a flow
	Of    Flow          // the one with that gap
	Total int           // datagrams of all flows that were sent between two that arrived
	By    []Missing     // them by flow and gap, in their order
}

// Missing are the datagrams of one gap of a flow that did not arrive, of those after the pod's last start.
type Missing struct {
	Flow
	Count int
	After time.Time // the arrival before them
}

func (m Missing) String() string {
	return fmt.Sprintf("%d %s of %s to %s after %s", m.Count, m.Kind, m.Pod, m.Dst, m.After.Format("15:04:05.000"))
}

// String is a sentence for a test's log.
func (l Loss) String() string {
	text := fmt.Sprintf("%s without %s connections of %s to %s; %d datagrams lost in all", l.Gap.Round(time.Millisecond),
		l.Of.Kind, l.Of.Pod, l.Of.Dst, l.Total)
	if len(l.By) > 0 {
		text += fmt.Sprintf(": %v", l.By[:min(len(l.By), 20)])
	}
	return text
}

// Lost says what is missing among sightings: numbers of a flow that never came. One that was overtaken, as while the
// way of a pod's packets changes, is not lost. What was sent before the first of a flow, or after its last, is not
// counted.
func Lost(all []Sighting) Loss {
	var l Loss
	flows := map[Flow]*sequence{}
	for _, x := range all {
		f := flows[x.Flow()]
		if f == nil {
			f = begun(x)
			flows[x.Flow()] = f
			continue
		}
		lost, gap := f.take(x)
		if l.Total += lost; gap > l.Gap {
			l.Gap, l.Of = gap, x.Flow()
		}
	}
	l.By = missing(flows)
	return l
}

func missing(flows map[Flow]*sequence) []Missing {
	var out []Missing
	for flow, f := range flows {
		gaps := map[time.Time]int{}
		for _, after := range f.missing {
			gaps[after]++
		}
		for after, count := range gaps {
			out = append(out, Missing{Flow: flow, Count: count, After: after})
		}
	}
	slices.SortFunc(out, func(a, b Missing) int {
		return cmp.Or(a.After.Compare(b.After), strings.Compare(fmt.Sprint(a.Flow), fmt.Sprint(b.Flow)))
	})
	return out
}

// sequence is what has come of a flow.
type sequence struct {
	first, last int               // numbers, the least and the greatest
	at          time.Time         // of the latest that was not overtaken
	missing     map[int]time.Time // numbers between, and when the one before them arrived
}

// before is by how much a number may be less than the first that was seen, and still be one that was overtaken: a
// second of the datagrams of new connections.
const before = 100

func begun(x Sighting) *sequence {
	return &sequence{first: x.Number, last: x.Number, at: x.At, missing: map[int]time.Time{}}
}

// take says how many more are missing now, less where one comes that was, and how long the flow had paused.
func (f *sequence) take(x Sighting) (lost int, gap time.Duration) {
	n := x.Number
	_, was := f.missing[n]
	switch {
	case n > f.last:
		for i := f.last + 1; i < n; i++ {
			f.missing[i] = f.at
		}
		lost, gap = n-f.last-1, x.At.Sub(f.at)
		f.last, f.at = n, x.At
	case was:
		delete(f.missing, n)
		lost = -1
	case n >= f.first || n < f.first-before: // a pod that started anew counts anew
		*f = *begun(x)
	}
	return lost, gap
}
