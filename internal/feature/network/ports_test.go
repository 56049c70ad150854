package network_test

import (
	"slices"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/network"
	"github.com/egret-net/egret/internal/world"
)

// checked has pods checked, and returns what Events say about them.
func checked(w *world.World, c *network.PortChecker) (says []string) {
	desired, _ := c.Decide(decide.View{World: w})
	for _, d := range desired {
		w.Decide(d.Kind, d.Key, d.Decision)
		for _, e := range d.Events {
			if d.Kind == world.KindPod && d.Decision.UID == w.Pod(d.Key).UID && e.Happened && e.Warning &&
				e.Reason == network.EventPortsClosed {
				says = append(says, d.Key+" "+e.Message)
			}
		}
	}
	return says
}

// TestClosedPortsAreTold: an Event tells once of each problem of a pod whose namespace has a network of its own. A
// problem that ended and comes back is told again, and so is that of another pod of the same name.
func TestClosedPortsAreTold(t *testing.T) {
	w, c := world.New("", compiletest.Config(world.SharedGateway)), network.NewPortChecker()
	w.FollowChanges(c.NoteChanged)
	set := func(namespace, uid string, problems ...string) {
		w.SetPod(&world.Pod{Namespace: namespace, Name: "p", UID: uid, PortProblems: problems})
	}
	own := func(name string, own bool) { w.SetNamespace(&world.Namespace{Name: name, OwnNetwork: own}) }
	w.SetPod(&world.Pod{Namespace: "own", Name: "host", HostNetwork: true, PortProblems: []string{"of the host"}})
	own("own", true)
	own("default", false)
	set("own", "1", "bad")
	for i, step := range []struct {
		change func()
		want   []string
	}{
		{func() {}, []string{"own/p bad"}},
		{func() { set("own", "1", "bad") }, nil},
		{func() { set("own", "1", "bad", "many") }, []string{"own/p many"}},
		{func() { set("own", "1") }, nil},
		{func() { set("own", "1", "bad") }, []string{"own/p bad"}},
		{func() { set("own", "2", "bad") }, []string{"own/p bad"}},
		{func() { w.DelPod("own/p") }, nil},
		{func() { set("default", "3", "bad") }, nil},
		{func() { set("late", "4", "bad") }, nil},
		{func() { own("late", true) }, []string{"late/p bad"}},
	} {
		step.change()
		if says := checked(w, c); !slices.Equal(says, step.want) {
			t.Errorf("step %d: %q, want %q", i, says, step.want)
		}
	}
}
