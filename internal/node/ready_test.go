package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/metrics"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/pulse"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// lacksCNI is a line of /readyz until the runtime finds the network.
const lacksCNI = "CNI: the runtime does not find Egret's network yet, and pods cannot be attached\n"

const silentNorthd = "process/ovn-northd: ovn-northd does not answer: it is stopped, or overloaded: see its log, and " +
	"`ps -o stat` for a T\n"

// serveReadyz serves an agent's health, and returns what asks it until the answer is the wanted one.
func serveReadyz(t *testing.T, a *Agent) (expect func(status int, text string)) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	free.Close()
	health := func() metrics.Health { return a.currentHealth(t.Context()) }
	go func() { _ = metrics.ServeHealth(t.Context(), at, health) }()
	return func(status int, text string) {
		t.Helper()
		var have string
		code := 0
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			answer, err := http.Get("http://" + at + "/readyz")
			if err != nil {
				continue
			}
			said, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if have, code = string(said), answer.StatusCode; have == text && code == status {
				return
			}
		}
		t.Errorf("/readyz: %d %q, want %d %q", code, have, status, text)
	}
}

// TestReadyzOfAStart: from the first moment on an agent says what it waits for.
func TestReadyzOfAStart(t *testing.T) {
	a := newAgent("n1", compiletest.Config(world.SharedGateway), all.ServedKinds(), slog.New(slog.DiscardHandler))
	a.startup.waitsFor = "the bridge is not up"
	expect := serveReadyz(t, a)
	expect(http.StatusServiceUnavailable, "start: the bridge is not up\n"+lacksCNI)
	silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	stopped := pulse.Start(t.Context(), "ovn-northd", silent)
	a.startup.noteStep(func(s *startup) { s.pulses = []*pulse.Pulse{stopped} })
	expect(http.StatusServiceUnavailable, "start: the bridge is not up\n"+lacksCNI+silentNorthd)

	a.source = kube.NewSource(nil, a.log, kube.Namespaces(), kube.EgressIPs())
	a.startup.noteStep(func(s *startup) { s.waitsFor, s.pulses = "", nil })
	want := []string{"cluster: these lists are not read yet: namespaces, egressips: is the API server reached?",
		"plan: the node has no pod subnet yet: is egret-controller running, and has the cluster subnet room?",
		lacksCNI[:len(lacksCNI)-1]}
	if have := a.missingParts(); !slices.Equal(have, want) {
		t.Errorf("without the cluster %q is missing, want %q", have, want)
	}
}

// TestReadyz: an agent is ready when OVN has carried out its first plan, the processes that it needs have answered once
// and the runtime finds its network. It stays ready.
func TestReadyz(t *testing.T) {
	a, target := startLateAgent(t, &lateServer{version: 5})
	g := &gate{Fake: target}
	g.closed.Store(true)
	if err := a.loop.Ask(t.Context(), func(*world.World) { a.loop.Planes = []plane.Plane{g} }); err != nil {
		t.Fatal(err)
	}
	a.loop.Wake()
	for end := time.Now().Add(10 * time.Second); *a.late.Load() == ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a plan that OVN has not carried out counts as carried out")
		}
	}
	a.started.Store(false) // as if no round had gone through before
	expect := serveReadyz(t, a)
	late := "plan: the targets do not hold the plan yet: ovn-northd and ovn-controller have not carried out what is in " +
		"the Northbound: see the agent's log\n"
	expect(http.StatusServiceUnavailable, late+lacksCNI)

	dir := t.TempDir()
	a.cni = cniserver.New(nil, a, a.log)
	o := Options{CNISocket: filepath.Join(dir, "cni.sock"), CNIConfDir: filepath.Join(dir, "conf")}
	go a.serveCNI(t.Context(), o)
	answers := make(chan struct{})
	northd := pulse.Start(t.Context(), "ovn-northd", func(context.Context) error { <-answers; return nil })
	a.startup.noteStep(func(s *startup) { s.pulses = []*pulse.Pulse{northd} })
	g.closed.Store(false)
	a.loop.Wake()
	expect(http.StatusServiceUnavailable, silentNorthd)
	if written, err := os.ReadDir(filepath.Join(dir, "conf")); err != nil || len(written) != 1 {
		t.Errorf("the runtime finds %v, %v", written, err)
	}
	close(answers)
	expect(http.StatusOK, "ok\n")
	g.closed.Store(true)
	a.loop.Wake()
	time.Sleep(2500 * time.Millisecond) // an answer may be so old
	expect(http.StatusOK, "ok\n")
}

// TestReadyzOfRefusedRows: an agent is not ready before its targets have taken the rows that its node has anyway. Rows
// that are there for a pod do not count.
func TestReadyzOfRefusedRows(t *testing.T) {
	a, target := startLateAgent(t, &lateServer{version: 5})
	refuse := func(names ...string) {
		t.Helper()
		err := a.loop.DoAndWait(t.Context(), func(w *world.World) {
			w.SetAttachment(compiletest.Attachment(compiletest.Pod(1, "n1")))
			target.Refuse = func(id plan.RowID, _ plan.Row) error {
				if slices.Contains(names, id.Name) {
					return errors.New("no\nfurther lines")
				}
				return nil
			}
		})
		if err != nil && len(plane.Refusals(err)) == 0 {
			t.Fatal(err)
		}
		a.loop.Wake()
	}
	refuse("breth0_n1", "ns1_p1")
	a.started.Store(false) // as if no round had gone through before
	a.complete.Store(false)
	a.loop.Wake()
	expect := serveReadyz(t, a)
	expect(http.StatusServiceUnavailable, "plan: rows of the node itself were refused (1 of them): nb refused "+
		"\"Logical_Switch_Port/breth0_n1\" of zone: no: see the problems of EgressNode n1\n"+lacksCNI)
	refuse("ns1_p1")
	expect(http.StatusServiceUnavailable, lacksCNI)
	refuse("breth0_n1")
	time.Sleep(2500 * time.Millisecond) // an answer may be so old
	expect(http.StatusServiceUnavailable, lacksCNI)
}

// TestOwnRows: of refused rows those count that no user's object is the reason of.
func TestOwnRows(t *testing.T) {
	for own, owners := range map[bool][]plan.Owner{
		true: {{Feature: "zone"}, {Feature: "service-node-health", Object: ref.Of(ref.Node, "n1")}},
		false: {{}, {Feature: "zone", Object: ref.Of(ref.LogicalNetwork, "blue")},
			{Feature: "zone-remote", Object: ref.Of(ref.Node, "n2")}, {Feature: "pod", Object: ref.Of(ref.Pod, "a/b")},
			{Feature: "service", Object: ref.Of(ref.Service, "a/b")},
			{Feature: "egressip", Object: ref.Of(ref.EgressIP, "e")}},
	} {
		for _, o := range owners {
			refused := []*plane.Refused{{Plane: "nb", Owner: o, Row: "r", Err: errors.New("no")}}
			if text := describeRefused("n1", refused); own != (text != "") {
				t.Errorf("refused of %v: %q", o, text)
			}
		}
	}
}
