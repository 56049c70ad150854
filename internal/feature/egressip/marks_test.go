package egressip_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

func (m *marking) markOf(name string) string {
	return m.objects[name].Annotations[v1.AnnotationEgressIPMark]
}

// TestMarksBeginWithNetworks: without a network of a user no EgressIP is written for a mark. With the first one all get
// theirs, which they keep when the network is gone.
func TestMarksBeginWithNetworks(t *testing.T) {
	m := newMarking(t)
	for i := range m.controllers {
		m.network(i, false)
	}
	m.create("e0")
	if m.settle(); m.markOf("e0") != "" || m.version != 1 {
		t.Errorf("without a network: mark %q, %d versions", m.markOf("e0"), m.version)
	}
	m.network(m.leads, true)
	m.settle()
	mark := m.markOf("e0")
	if mark == "" || m.version != 2 {
		t.Errorf("with a network: mark %q, %d versions, want one write", mark, m.version)
	}
	m.network(m.leads, false)
	m.lead(1)
	if m.settle(); m.markOf("e0") != mark {
		t.Errorf("the network is gone: mark %q, was %s", m.markOf("e0"), mark)
	}
}

// TestMarkIsReplaced: a mark that is none, that an older EgressIP has, or that somebody wrote over is replaced, and an
// Event says why.
func TestMarkIsReplaced(t *testing.T) {
	m := newMarking(t)
	m.create("old")
	m.create("young")
	m.settle()
	mine := m.markOf("old")
	for _, x := range []struct{ object, mark, says string }{
		{"old", "55001", `annotation k8s.ovn.org/egressip-mark: "55001" is not a number from 50000 to 55000: it becomes ` +
			mine},
		{"old", "050000", `annotation k8s.ovn.org/egressip-mark: "050000" is not a number from 50000 to 55000`},
		{"old", "x", `"x" is not a number`},
		{"old", "", ""},
		{"old", "54321", "somebody wrote over the mark: it becomes " + mine + " again"},
		{"young", mine, "mark " + mine + " is that of EgressIP old: this one's is " + m.markOf("young")},
	} {
		m.events = nil
		m.overwrite(x.object, x.mark)
		m.settle()
		if told := strings.Join(m.events, "\n"); !strings.Contains(told, x.says) || (x.says == "") != (told == "") {
			t.Errorf("%s has mark %q: told %q, want %q", x.object, x.mark, told, x.says)
		}
		if m.checkMarks(); m.markOf("old") != mine {
			t.Errorf("the mark is %s, was %s", m.markOf("old"), mine)
		}
	}
}

// TestMarkOfTwo: another controller finds two EgressIPs with one mark. The older keeps it, whichever has the first
// name.
func TestMarkOfTwo(t *testing.T) {
	for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
		m := newMarking(t)
		m.create(names[0])
		m.create(names[1])
		for i := range m.controllers {
			m.deliver(i, 9)
		}
		m.overwrite(names[0], "51234")
		m.overwrite(names[1], "51234")
		m.lead(1)
		m.settle()
		if m.checkMarks(); m.markOf(names[0]) != "51234" {
			t.Errorf("the older has mark %s\n%s", m.markOf(names[0]), m.text())
		}
		if told := fmt.Sprint(m.events); strings.Count(told, "MarkReplaced") != 1 {
			t.Errorf("told %s", told)
		}
	}
}

// TestMarksAfterRestore: a backup from before the marks loses them, and each EgressIP gets its own again, from the same
// controller and from another one.
func TestMarksAfterRestore(t *testing.T) {
	for leader := range 2 {
		m := newMarking(t)
		for i := range 6 {
			m.create(fmt.Sprint("e", i))
		}
		backup := map[string]*v1.EgressIP{}
		for name, o := range m.objects {
			backup[name] = o.DeepCopy()
		}
		m.settle()
		before := m.text()
		if m.restore(backup); leader != m.leads {
			m.lead(leader)
		}
		if m.settle(); m.text() != before {
			t.Errorf("after a restore\n%s\nwant\n%s", m.text(), before)
		}
	}
}

// TestReleasedMarkRests: the next EgressIP does not get the mark that was just released: packets may still have it.
func TestReleasedMarkRests(t *testing.T) {
	m := newMarking(t)
	m.uids = []types.UID{"a", "b"}
	m.create("e0")
	m.settle()
	released := m.markOf("e0")
	m.remove("e0")
	m.create("e1")
	if m.settle(); m.markOf("e1") == released {
		t.Errorf("mark %s is given again", released)
	}
}

// TestMarksAreExhausted: the EgressIP that finds no mark says so, keeps none, and has one when another one is gone.
func TestMarksAreExhausted(t *testing.T) {
	m := newMarking(t)
	all := world.LastMark - world.FirstMark + 1
	m.uids = nil
	for i := range all + 1 {
		m.uids = append(m.uids, types.UID(fmt.Sprint(i)))
	}
	for i := range all + 1 {
		m.create(fmt.Sprint("e", i))
	}
	begun := time.Now()
	m.settle()
	t.Logf("%d EgressIPs have marks after %v", all, time.Since(begun))
	last := fmt.Sprint("e", all)
	condition := func() *metav1.Condition {
		for _, c := range m.objects[last].Status.Conditions {
			if c.Type == v1.ConditionMarked {
				return &c
			}
		}
		return nil
	}
	if c := condition(); c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1.ReasonNoMarkLeft ||
		!strings.Contains(c.Message, "Delete EgressIPs") || m.markOf(last) != "" {
		t.Errorf("mark %q, condition %+v", m.markOf(last), c)
	}
	if told := strings.Join(m.events, "\n"); len(m.events) != 1 || !strings.Contains(told, last+": NoMarkLeft: ") {
		t.Errorf("told %.200s", told)
	}
	free := m.markOf("e7")
	m.remove("e7")
	m.settle()
	if m.checkMarks(); m.markOf(last) != free || condition() != nil {
		t.Errorf("mark %q, want %s, condition %+v", m.markOf(last), free, condition())
	}
}
