package controller_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// overwrite has somebody else write the status of an EgressIP whenever it is another, until the test ends.
func (a *api) overwrite(t *testing.T, name string, status v1.EgressIPStatus) {
	go func() {
		for sleep(t.Context(), time.Millisecond) {
			a.mu.Lock()
			if e := a.eips[name]; len(e.Status.Items) > 0 && e.Status.Items[0].Node != status.Items[0].Node {
				e = e.DeepCopy()
				e.Status = status
				a.showEgressIP(e)
			}
			a.mu.Unlock()
		}
	}()
}

func (a *api) statusOf(name string) v1.EgressIPStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	return *a.eips[name].Status.DeepCopy()
}

// TestOverwrittenStatusIsWrittenAgain: a status that somebody else writes is written again at once, and with growing
// pauses against one who does not stop. An address that moves meanwhile waits for none of them.
func TestOverwrittenStatusIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _, _ := oneAssigned(t, 10*time.Millisecond, "n1", "n2", "n3")
		a.hold("n1", map[string][]string{"e": {"172.18.0.33"}})
		time.Sleep(5 * time.Second)
		a.overwrite(t, "e", v1.EgressIPStatus{Items: []v1.EgressIPStatusItem{
			{Node: "n9", EgressIP: "172.18.0.33", Since: metav1.NowMicro()}}})
		before := a.written("egressips/e")
		time.Sleep(time.Second / 2)
		synctest.Wait()
		if n := a.written("egressips/e") - before; n != 1 {
			t.Errorf("%d writes in the first half of a second, want 1", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := a.written("egressips/e") - before; n < 10 || n > 16 {
			t.Errorf("%d writes in the first minute of a quarrel", n)
		}
		before = a.written("egressips/e")
		a.unlabel("n1")
		time.Sleep(time.Second / 2)
		if n := a.written("egressips/e") - before; n == 0 {
			t.Error("a move waits for the end of a quarrel")
		}
	})
}

// TestAlteredStatusIsWrittenAgain: what a status says for people alone, and what nobody can read in it, is written
// again, too.
func TestAlteredStatusIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _, _ := oneAssigned(t, 10*time.Millisecond, "n1")
		a.hold("n1", map[string][]string{"e": {"172.18.0.33"}})
		time.Sleep(5 * time.Second)
		right := a.statusOf("e")
		for name, alter := range map[string]func(*v1.EgressIPStatus){
			"nodes for people":     func(s *v1.EgressIPStatus) { s.AssignedNodes = "n9" },
			"addresses for people": func(s *v1.EgressIPStatus) { s.AssignedEgressIPs = "" },
			"an address": func(s *v1.EgressIPStatus) {
				s.Items = append(slices.Clone(s.Items), v1.EgressIPStatusItem{Node: "n1", EgressIP: "none"})
			},
			"a family": func(s *v1.EgressIPStatus) { s.InForce = append(slices.Clone(s.InForce), "IPv5") },
		} {
			a.mu.Lock()
			e := a.eips["e"].DeepCopy()
			alter(&e.Status)
			a.showEgressIP(e)
			a.mu.Unlock()
			time.Sleep(2 * time.Minute)
			have := a.statusOf("e")
			have.Conditions = right.Conditions // their order does not matter
			if !equality.Semantic.DeepEqual(have, right) {
				t.Errorf("%s: the status is %+v, want %+v", name, have, right)
			}
		}
	})
}
