package service_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/feature/service"
	"github.com/egret-net/egret/internal/world"
)

// TestCrowd: of many Services of one namespace that ask for the same addresses, one that comes, changes or goes has
// those compiled anew alone that get something by it or lose it. What is too much for the namespace is refused.
func TestCrowd(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	m, r := compile.NewMemo(all.Features()), service.NewRefuser()
	w.FollowChanges(r.NoteChanged)
	m.Update(w)
	refuse(r, w, time.Unix(1e6, 0))
	set := func(s *world.Service) int {
		w.SetService(s)
		return m.Update(w)
	}
	alone := set(inCrowd(0))
	most := 3 * alone
	for i := range 39 {
		if n := set(inCrowd(i + 1)); n > most {
			t.Fatalf("one more is %d units, alone it is %d", n, alone)
		}
	}
	w.DelService("evil/s0")
	if n := m.Update(w); n > most {
		t.Errorf("the first is gone: %d units, alone it is %d", n, alone)
	}
	if !strings.Contains(saysOf(w, r, "evil/s39"), "use fewer addresses and ports") {
		t.Errorf("the last is told %q", saysOf(w, r, "evil/s39"))
	}
	if says := saysOf(w, r, "evil/s1"); says != "" {
		t.Errorf("the first is told %q", says)
	}
}

func saysOf(w *world.World, r *service.Refuser, key string) string {
	refuse(r, w, time.Unix(1e6, 0))
	for _, c := range w.Service(key).Conditions {
		if c.Type == service.ConditionRefused {
			return c.Message
		}
	}
	return ""
}

// inCrowd asks for 8 addresses with 64 ports each.
func inCrowd(i int) *world.Service {
	s := &world.Service{Namespace: "evil", Name: fmt.Sprint("s", i), UID: fmt.Sprint(i),
		Created: time.Unix(int64(i), 0), ClusterIPs: []netip.Addr{compiletest.V4(10, 96, 1, i)}}
	for a := range 8 {
		s.ExternalIPs = append(s.ExternalIPs, compiletest.V4(203, 0, 113, a+1))
	}
	for p := range 64 {
		s.Ports = append(s.Ports, world.ServicePort{Name: fmt.Sprint(p), Protocol: "tcp", Port: uint16(1000 + p)})
	}
	return s
}
