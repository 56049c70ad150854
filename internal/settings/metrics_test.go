package settings_test

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/metrics"
	"github.com/egret-net/egret/internal/settings"
)

func readMetrics(t *testing.T, file string, args ...string) (*settings.Metrics, []string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ovnkube.conf")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	f := flag.NewFlagSet("egret", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	reach, m := settings.Flags(f), settings.MetricsFlags(f)
	err := f.Parse(append(args, "--config-file", path))
	return m, reach.Ignored, errors.Join(err, reach.Read(), m.Check())
}

// TestFileOfMetrics: OVN-Kubernetes' lines; flags beat them, and empty flags, as a ConfigMap gives them, are flags.
func TestFileOfMetrics(t *testing.T) {
	const file = "[metrics]\nbind-address=0.0.0.0:9410\nnode-server-privkey=/certs/tls.key\n" +
		"node-server-cert=/certs/tls.crt\nclient-cacert=/certs/ca.crt\n"
	files := metrics.Files{Cert: "/certs/tls.crt", Key: "/certs/tls.key", ClientCA: "/certs/ca.crt"}
	for _, c := range []struct {
		args, address string
		tls           metrics.Files
	}{
		{"", "0.0.0.0:9410", files},
		{"--metrics-bind-address=:9", ":9", files},
		{"--metrics-client-cacert=", "0.0.0.0:9410", metrics.Files{Cert: files.Cert, Key: files.Key}},
		{"--node-server-cert= --node-server-privkey= --metrics-client-cacert=", "0.0.0.0:9410", metrics.Files{}},
	} {
		m, ignored, err := readMetrics(t, file, strings.Fields(c.args)...)
		if err != nil || len(ignored) > 0 || m.Address != c.address || m.TLS != c.tls || m.Healthz != "" {
			t.Errorf("%s: have %+v, ignored %v, %v", c.args, m, ignored, err)
		}
	}
}

// TestPartOfMetricsFiles: a program that is told a part of the files does not start, and says what is missing.
func TestPartOfMetricsFiles(t *testing.T) {
	for args, want := range map[string]string{
		"--node-server-cert=/tls.crt":     "lacks --node-server-privkey (node-server-privkey in [metrics])",
		"--node-server-privkey=/tls.key":  "lacks --node-server-cert (node-server-cert in [metrics])",
		"--metrics-client-cacert=/ca.crt": "lacks --node-server-cert (node-server-cert in [metrics])",
	} {
		if _, _, err := readMetrics(t, "", args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have %v, want %s", args, err, want)
		}
	}
}
