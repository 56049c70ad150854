package egressip

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// ConditionMarked is False while an EgressIP has no mark because others have all. Its reason is that of an Event, too.
const (
	ConditionMarked   = "Marked"
	ReasonNoMarkLeft  = "NoMarkLeft"
	EventMarkReplaced = "MarkReplaced"
)

// Marker gives each EgressIP a mark, which packets from networks of users have until they are translated. It begins
// when a cluster has the first such network: nobody reads marks before. An EgressIP keeps its mark as long as it
// exists. If two EgressIPs have one mark, the older keeps it.
//
// A mark follows from the EgressIP's UID. So two controllers give it the same mark, whatever each has seen. A mark that
// was just released is not given to the next EgressIP: the datapath may have packets with it.
type Marker struct {
	// shown are the marks that the API showed first in this term, by name.
	shown   map[string]ownMark
	last    map[string]markState
	changed map[string]struct{} // EgressIPs that may differ from last
	stale   bool
	begun   bool // there was a network of a user
	told    decide.Told
}

// ownMark is the mark of an EgressIP with a UID.
type ownMark struct {
	uid  string
	mark int
}

// markState is all of an EgressIP that decisions about marks follow from.
type markState struct {
	uid         string
	created     time.Time
	generation  int64
	mark, shown int
	problem     string // of the mark that the API shows
	condition   world.Condition
}

// NewMarker has decided nothing yet.
func NewMarker() *Marker {
	return &Marker{shown: map[string]ownMark{}, last: map[string]markState{}, changed: map[string]struct{}{},
		stale: true, told: decide.Told{}}
}

// NoteChanged takes in what changes.
func (d *Marker) NoteChanged(e world.Entry) {
	switch e.Kind {
	case world.KindNetworks:
		d.stale = true
	case world.KindEgressIP:
		d.changed[e.Key] = struct{}{}
	}
}

// Seen decides again where the API shows another mark than was decided.
func (d *Marker) Seen(v decide.View, object world.Entry) (again time.Time) {
	if object.Kind != world.KindEgressIP {
		return time.Time{}
	}
	d.changed[object.Key] = struct{}{}
	if e := v.EgressIP(object.Key); e != nil && !d.keepShown(v, e) {
		return v.Now
	}
	return time.Time{}
}

// keepShown keeps the first mark that the API shows of an EgressIP: a later one, by somebody else, does not count.
// Where an older EgressIP has the first mark, it keeps the mark that was decided instead. It says whether the API shows
// no other mark than e has.
func (d *Marker) keepShown(v decide.View, e *world.EgressIP) (agrees bool) {
	shown := v.ShownEgressIP(e.Name)
	if shown == nil || shown.Mark == 0 {
		return true
	}
	own := d.shown[e.Name]
	if own.uid != e.UID || own.mark == 0 && shown.Mark == e.Mark {
		d.shown[e.Name] = ownMark{e.UID, shown.Mark}
	}
	return shown.Mark == e.Mark
}

// Decide gives marks to all EgressIPs that need one, if anything about marks has changed.
func (d *Marker) Decide(v decide.View) (desired []decide.Desired, again time.Time) {
	for name := range d.changed {
		d.stale = d.noteState(v, name) || d.stale
	}
	clear(d.changed)
	if !d.stale {
		return nil, time.Time{}
	}
	d.stale = false
	if d.begun = d.begun || len(v.Networks()) > 1; !d.begun {
		return nil, time.Time{}
	}
	objects := slices.SortedFunc(world.Each[world.EgressIP](&v.World.View, world.KindEgressIP), world.ByPrecedence)
	for _, e := range objects {
		d.keepShown(v, e)
	}
	marks := d.allotMarks(objects)
	for _, e := range objects {
		if one, is := d.desiredMark(v, e, marks); is {
			desired = append(desired, one)
		}
	}
	maps.DeleteFunc(d.told, func(key string, _ decide.ToldOf) bool { return v.EgressIP(key) == nil })
	return desired, time.Time{}
}

// noteState takes in an EgressIP as it is, and says whether marks may follow from the difference.
func (d *Marker) noteState(v decide.View, name string) (differs bool) {
	e, was := v.EgressIP(name), d.last[name]
	if e == nil {
		delete(d.last, name)
		delete(d.shown, name)
		return was.uid != ""
	}
	now := markState{uid: e.UID, created: e.Created, generation: e.Generation, mark: e.Mark,
		condition: conditionOf(e, ConditionMarked)}
	if shown := v.ShownEgressIP(name); shown != nil {
		now.shown, now.problem = shown.Mark, shown.MarkProblem
	}
	d.last[name] = now
	return now != was
}

// marks says which EgressIP has which mark.
type marks struct {
	byName map[string]int
	owner  map[int]*world.EgressIP
}

// giveMark gives an EgressIP a mark, unless it has one or another one has this.
func (m marks) giveMark(e *world.EgressIP, mark int) {
	if mark != 0 && m.owner[mark] == nil && m.byName[e.Name] == 0 {
		m.byName[e.Name], m.owner[mark] = mark, e
	}
}

// allotMarks returns the marks of EgressIPs, which are given by age. Marks that the API has shown come first, then
// marks that were decided and that the API does not show yet.
func (d *Marker) allotMarks(objects []*world.EgressIP) marks {
	m := marks{map[string]int{}, map[int]*world.EgressIP{}}
	for _, e := range objects {
		if own := d.shown[e.Name]; own.uid == e.UID {
			m.giveMark(e, own.mark)
			d.shown[e.Name] = ownMark{own.uid, m.byName[e.Name]} // 0: an older one has it
		}
	}
	for _, e := range objects {
		m.giveMark(e, e.Mark)
	}
	for _, e := range objects {
		if m.byName[e.Name] == 0 {
			m.giveMark(e, m.freeMark(e.UID))
		}
	}
	return m
}

// freeMark returns a free mark for an object, or 0.
func (m marks) freeMark(uid string) int {
	const all = world.LastMark - world.FirstMark + 1
	h := fnv.New32a()
	h.Write([]byte(uid))
	first := int(h.Sum32() % all)
	for i := range all {
		if mark := world.FirstMark + (first+i)%all; m.owner[mark] == nil {
			return mark
		}
	}
	return 0
}

// desiredMark returns an EgressIP with its mark, or with the condition that says why it has none. It returns nothing
// where the world has that.
func (d *Marker) desiredMark(v decide.View, e *world.EgressIP, m marks) (out decide.Desired, is bool) {
	mark, notices := m.byName[e.Name], []decide.Notice(nil)
	c, was := world.Condition{Type: ConditionMarked}, conditionOf(e, ConditionMarked)
	if mark == 0 {
		c.Status, c.Reason = "False", ReasonNoMarkLeft
		c.Message = fmt.Sprintf("other EgressIPs have all marks from %d to %d: pods of users' networks that this one "+
			"selects send nothing outside. Delete EgressIPs that nobody needs", world.FirstMark, world.LastMark)
		notices = append(notices, markNotice(ReasonNoMarkLeft, c.Message))
	} else if text := m.replacedText(v.ShownEgressIP(e.Name), mark); text != "" {
		notices = append(notices, markNotice(EventMarkReplaced, text))
	}
	var conditions []world.Condition
	if c.Status != "" || was.Status != "" {
		conditions = decide.Dated(e.Conditions, e.Generation, v.Now, c)
	}
	out = ofEgressIP(e, conditions, d.told.Tell(e.Name, e.UID, was.Status == "False", notices))
	for i := range out.Events {
		out.Events[i].Action = "Mark"
	}
	out.Decision.Mark = mark
	return out, mark != e.Mark || len(conditions)+len(out.Events) > 0
}

// replacedText says why an EgressIP does not keep the mark that the API shows; "": it keeps it, or has none.
func (m marks) replacedText(shown *world.EgressIP, mark int) string {
	switch {
	case shown == nil || shown.Mark == mark:
		return ""
	case shown.MarkProblem != "":
		return fmt.Sprintf("%s: it becomes %d", shown.MarkProblem, mark)
	case shown.Mark == 0:
		return ""
	}
	if o := m.owner[shown.Mark]; o != nil {
		return fmt.Sprintf("mark %d is that of %s %s: this one's is %d", shown.Mark, ref.EgressIP, o.Name, mark)
	}
	return fmt.Sprintf("somebody wrote over the mark: it becomes %d again", mark)
}

func markNotice(event, text string) decide.Notice {
	return decide.Notice{Finding: decide.Finding{Kind: event, Detail: text}, Event: event, Message: text}
}
