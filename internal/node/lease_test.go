package node

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/world"
)

// changedLease refuses renewals that name a version, as an API server of a restored etcd does.
type changedLease struct{ lateServer }

func (s *changedLease) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.URL.Path, "/leases/") {
		s.lateServer.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "resourceVersion") {
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`)
		return
	}
	fmt.Fprint(w, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"resourceVersion":"5"}}`)
}

// TestLeaseTellsOfARestore: an agent whose last renewal is gone lists all kinds, and renews the Lease.
func TestLeaseTellsOfARestore(t *testing.T) {
	a, _ := startAgentOf(t, &changedLease{lateServer{version: 9}}, all.ServedKinds())
	n := *compiletest.Node(1)
	n.UID = "n1"
	a.loop.Do(func(w *world.World) { w.SetNode(&n) })
	for _, last := range []string{"", "7"} {
		version, err := a.renewOrList(t.Context(), time.Minute, last)
		if listed := a.source.CheckListed() == nil; err != nil || version != "5" || listed != (last == "") {
			t.Errorf("after renewal %q: version %q, %v; what it has is current: %v", last, version, err, listed)
		}
	}
}
