package health

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// freePort is one that nobody has.
func freePort(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

func checks(port uint16, endpoints int) *plan.State {
	s := plan.New()
	s.HealthChecks.Put(planetest.Owner("service/default/web"), plan.HealthCheck{Port: port},
		plan.HealthSpec{Namespace: "default", Service: "web", Endpoints: endpoints})
	return s
}

func mustApply(t *testing.T, p *Plane, s *plan.State) {
	t.Helper()
	if err := plane.Apply(t.Context(), []plane.Plane{p}, s); err != nil {
		t.Fatal(err)
	}
}

// TestAnswers compares with what kube-proxy says, in both families.
func TestAnswers(t *testing.T) {
	p, port := New(t.Context(), Sockets{}), freePort(t)
	for _, c := range []struct{ endpoints, status int }{{0, 503}, {2, 200}, {1, 200}, {0, 503}} {
		mustApply(t, p, checks(port, c.endpoints))
		for _, host := range []string{"127.0.0.1", "[::1]"} {
			r, err := http.Get(fmt.Sprintf("http://%s:%d/healthz", host, port))
			if err != nil {
				t.Fatal(err)
			}
			var body map[string]any
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Fatal(err)
			}
			r.Body.Close()
			want := fmt.Sprintf("map[localEndpoints:%d service:map[name:web namespace:default] "+
				"serviceProxyHealthy:true]", c.endpoints)
			weight := r.Header.Get("X-Load-Balancing-Endpoint-Weight")
			if have := fmt.Sprint(body); r.StatusCode != c.status || have != want || weight != fmt.Sprint(c.endpoints) {
				t.Errorf("%d endpoints: status %d, weight %s, %s; want status %d and %s", c.endpoints, r.StatusCode,
					weight, have, c.status, want)
			}
		}
	}
	mustApply(t, p, plan.New())
	if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
		c.Close()
		t.Error("the port is open after its Service has gone")
	}
}

// TestNode compares with what kube-proxy says at its /healthz.
func TestNode(t *testing.T) {
	p, port := New(t.Context(), Sockets{}), freePort(t)
	for eligible, status := range map[bool]int{true: 200, false: 503} {
		s := plan.New()
		s.HealthChecks.Put(planetest.Owner("service-node-health/n1"), plan.HealthCheck{Port: port},
			plan.HealthSpec{Node: "n1", Eligible: eligible})
		mustApply(t, p, s)
		r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", port))
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			LastUpdated, CurrentTime time.Time
			NodeEligible             *bool
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != status || body.NodeEligible == nil || *body.NodeEligible != eligible ||
			body.LastUpdated.IsZero() || body.CurrentTime.Before(body.LastUpdated) {
			t.Errorf("eligible %t: status %d, %+v", eligible, r.StatusCode, body)
		}
	}
}

// TestTakenPort is refused, names its owner, and is served once the port is free.
func TestTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, port := New(t.Context(), Sockets{}), uint16(l.Addr().(*net.TCPAddr).Port)
	refused := plane.Refusals(p.Grow(t.Context(), checks(port, 1)))
	if len(refused) != 1 || refused[0].Owner != planetest.Owner("service/default/web") {
		t.Fatalf("refused: %v", refused)
	}
	l.Close()
	mustApply(t, p, checks(port, 1))
}

// TestFake holds what the servers would say.
func TestFake(t *testing.T) {
	f := NewFake()
	p := New(t.Context(), f)
	mustApply(t, p, checks(30000, 1))
	mustApply(t, p, checks(30000, 3))
	if held := f.Held(); len(held) != 1 || held[plan.HealthCheck{Port: 30000}].Endpoints != 3 {
		t.Errorf("held: %v", held)
	}
	if len(plane.Refusals(New(t.Context(), f).Grow(t.Context(), checks(30000, 1)))) != 1 {
		t.Error("a port was opened twice")
	}
	mustApply(t, p, plan.New())
	if held := f.Held(); len(held) != 0 {
		t.Errorf("held: %v", held)
	}
}
