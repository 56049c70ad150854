package decide

import (
	"net/netip"
	"strings"

	"github.com/egret-net/egret/internal/world"
)

// Finding is what is wrong with an object, as a value: two that are equal are no news, whatever their words say by now.
type Finding struct {
	Kind   string     // the kind of fault: "EgressIPConflict"
	Reason string     // why, as a condition names it: "NoAssignableNode"
	IP     netip.Addr // the address that it is about; zero: the whole object
	Family world.Family
	Part   string // the part of the object that it is about, as people write it: "192.0.2.7:80/tcp"
	Node   string // the node that it is about, or that reports it
	Detail string // the words of the node, or of the border to the API
	Late   bool   // it has been so for longer than it should, which is news once more; its end is not
}

// Notice is a finding with the Event that tells people of it.
type Notice struct {
	Finding
	Event   string // the reason of the Event
	Message string
	Why     string // what is said after the message, and once of all that have it in common; "": nothing
}

// News are those that are found now and were not before.
func News(before, now []Notice) []Notice {
	var out []Notice
	known := map[Finding]bool{}
	for _, b := range before {
		known[b.Finding] = true
		b.Late = false // that it is late no more is no news
		known[b.Finding] = true
	}
	for _, n := range now {
		if !known[n.Finding] {
			out = append(out, n)
		}
	}
	return out
}

// Tell makes Events, which are Warnings, of what is found now and was not before.
func Tell(before, now []Notice) []Event {
	var out []Event
	for _, n := range News(before, now) {
		out = append(out, Event{Warning: true, Reason: n.Event, Message: n.Message})
	}
	return out
}

// Messages are what notices say, one sentence.
func Messages(notices []Notice) string { return strings.Join(Texts(notices), "; ") }

// Texts are what notices say. Those with the same Why are one text, where the first of them is.
func Texts(notices []Notice) []string {
	var whys []string
	var said [][]string
	at := map[string]int{}
	for _, n := range notices {
		i, known := at[n.Why]
		if !known || n.Why == "" {
			i = len(whys)
			at[n.Why], whys, said = i, append(whys, n.Why), append(said, nil)
		}
		said[i] = append(said[i], n.Message)
	}
	out := make([]string, len(whys))
	for i, why := range whys {
		if out[i] = Some(said[i]); why != "" {
			out[i] += ": " + why
		}
	}
	return out
}

// Told has the findings reported in one term, by object.
type Told map[string]ToldOf

// ToldOf has the findings reported about one object.
type ToldOf struct {
	uid     string
	notices []Notice
}

// Tell makes one Event, a Warning, of all that is found now and was not before: of an object with many parts there may
// be much. The first decision of a term knows of nothing before: where the object shows that something is wrong, a
// former leader has told of it.
func (t Told) Tell(key, uid string, shown bool, now []Notice) []Event {
	last, known := t[key]
	t[key] = ToldOf{uid, now}
	switch {
	case known && last.uid == uid:
		now = News(last.notices, now)
	case shown:
		return nil
	}
	if len(now) == 0 {
		return nil
	}
	return []Event{{Warning: true, Reason: now[0].Event, Message: Messages(now)}}
}
