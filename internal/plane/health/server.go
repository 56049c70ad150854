package health

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/egret-net/egret/internal/plan"
)

// server says how one Service is doing, or the node.
type server struct {
	end func()

	mu   sync.Mutex
	spec plan.HealthSpec
	at   time.Time // when it was told
}

func (s *server) setSpec(spec plan.HealthSpec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spec, s.at = spec, time.Now()
}

func (s *server) currentSpec() (spec plan.HealthSpec, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spec, s.at
}

// answer has kube-proxy's names (pkg/proxy/healthcheck, service_health.go): load balancers know them.
type answer struct {
	Service             serviceName `json:"service"`
	LocalEndpoints      int         `json:"localEndpoints"`
	ServiceProxyHealthy bool        `json:"serviceProxyHealthy"`
}

type serviceName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// nodeAnswer has those of its /healthz (proxy_health.go).
type nodeAnswer struct {
	LastUpdated  time.Time `json:"lastUpdated"`
	CurrentTime  time.Time `json:"currentTime"`
	NodeEligible bool      `json:"nodeEligible"`
}

func (s *server) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	spec, since := s.currentSpec()
	if spec.Node != "" {
		writeAnswer(w, spec.Eligible, nodeAnswer{since, time.Now(), spec.Eligible})
		return
	}
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.Itoa(spec.Endpoints))
	writeAnswer(w, spec.Endpoints > 0, answer{serviceName{spec.Namespace, spec.Service}, spec.Endpoints, true})
}

func writeAnswer(w http.ResponseWriter, serves bool, answer any) {
	body, err := json.MarshalIndent(answer, "", "\t")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !serves {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(append(body, '\n')) // the client has gone
}
