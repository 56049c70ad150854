package settings

import (
	"flag"
	"fmt"

	"github.com/egret-net/egret/internal/metrics"
)

// Metrics is where a program says something of itself.
type Metrics struct {
	metrics.Options
	// Healthz is the host:port of /healthz and /readyz alone, without TLS; "": nowhere.
	Healthz string
}

// MetricsFlags registers the flags. Call Check when they, and the file of --config-file, have been read.
func MetricsFlags(f *flag.FlagSet) *Metrics {
	m := &Metrics{}
	f.StringVar(&m.Address, "metrics-bind-address", "",
		"`host:port` for /metrics, /healthz and /readyz; without it, none is served there")
	f.StringVar(&m.Healthz, "healthz-bind-address", "",
		"`host:port` for /healthz and /readyz alone, without TLS: where the kubelet asks")
	f.StringVar(&m.TLS.Cert, "node-server-cert", "",
		"certificate `file` for /metrics; certificate and key are given together, or there is no TLS")
	f.StringVar(&m.TLS.Key, "node-server-privkey", "", "private key `file` for /metrics")
	f.StringVar(&m.TLS.ClientCA, "metrics-client-cacert", "",
		"`file` of the authority that certificates of /metrics' readers must be of; without it, anybody may read")
	return m
}

// Check refuses a part of the files.
func (m *Metrics) Check() error {
	if m.TLS == (metrics.Files{}) {
		return nil
	}
	for _, needed := range []struct{ flag, given string }{
		{"node-server-cert", m.TLS.Cert}, {"node-server-privkey", m.TLS.Key},
	} {
		if needed.given == "" {
			return fmt.Errorf("TLS of the metrics lacks %s: give certificate and key, or none of the files",
				describeFlag(needed.flag))
		}
	}
	return nil
}
