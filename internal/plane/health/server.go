package health

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	"github.com/egret-net/egret/internal/plan"
)

// server says how one Service is doing.
type server struct {
	end func()

	mu   sync.Mutex
	spec plan.HealthSpec
}

func (s *server) say(spec plan.HealthSpec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spec = spec
}

func (s *server) says() plan.HealthSpec {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spec
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

func (s *server) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	spec := s.says()
	body, err := json.MarshalIndent(answer{serviceName{spec.Namespace, spec.Service}, spec.Endpoints, true}, "", "\t")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.Itoa(spec.Endpoints))
	if spec.Endpoints == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(append(body, '\n')) // the client has gone
}
