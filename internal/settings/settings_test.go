package settings_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/settings"
	"github.com/egret-net/egret/internal/world"
)

func read(t *testing.T, file string, args ...string) (*settings.Reachability, error) {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "ovnkube.conf")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config-file", path)
	}
	f := flag.NewFlagSet("egret", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	r := settings.Flags(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return r, r.Read()
}

// TestFile: the seed's own examples, in a file that says other things too.
func TestFile(t *testing.T) {
	const file = `# of OVN-Kubernetes
[default]
mtu=1400
cluster-subnets="10.244.0.0/16/24"

[OVNKubernetesFeature]
enable-egress-ip
egressip-reachability-total-timeout=123
EgressIP-Node-Healthcheck-Port = 9107

[ovnnorth]
client-privkey=/certs/tls.key
client-cert=/certs/tls.crt
client-cacert="/certs/ca.crt"
cert-common-name=ovn
`
	r, err := read(t, file)
	if err != nil || r.Timeout != 123*time.Second || r.Port != 9107 {
		t.Errorf("have %v, port %d, %v", r.Timeout, r.Port, err)
	}
	if r.TLS.Key != "/certs/tls.key" || r.TLS.Cert != "/certs/tls.crt" || r.TLS.CA != "/certs/ca.crt" ||
		r.TLS.Name != "ovn" {
		t.Errorf("TLS: %+v", r.TLS)
	}
	r, err = read(t, file, "--egressip-reachability-total-timeout=0", "--egressip-node-healthcheck-port", "9200")
	if err != nil || r.Timeout != 0 || r.Port != 9200 {
		t.Errorf("the command line beats the file; have %v, port %d, %v", r.Timeout, r.Port, err)
	}
}

// TestIgnored: every line that no setting is, and no other.
func TestIgnored(t *testing.T) {
	r, err := read(t, "[default]\nmtu=1400\n[OVNKubernetesFeature]\nenable-egress-ip\n"+
		"egressip-reachability-total-time=5\negressip-node-healthcheck-port=9107\n[ovn-north]\nclient-cert=x\n[gateway]\nv4-join-subnets=x\n")
	want := "client-cert in [ovn-north], egressip-reachability-total-time in [ovnkubernetesfeature], enable-egress-ip " +
		"in [ovnkubernetesfeature], v4-join-subnets in [gateway]"
	if have := strings.Join(r.Ignored, ", "); err != nil || have != want || r.Port != 9107 {
		t.Errorf("have %s, port %d, %v; want %s", have, r.Port, err, want)
	}
	var said bytes.Buffer
	r.Warn(slog.New(slog.NewTextHandler(&said, nil)))
	if !strings.Contains(said.String(), "egressip-reachability-total-time in [ovnkubernetesfeature]") {
		t.Errorf("said %q", said.String())
	}
	said.Reset()
	if r, _ = read(t, ""); len(r.Ignored) > 0 {
		t.Errorf("without a file %v is ignored", r.Ignored)
	}
	if r.Warn(slog.New(slog.NewTextHandler(&said, nil))); said.Len() > 0 {
		t.Errorf("said %q of nothing", said.String())
	}
}

// TestOwnSectionOfTLS: the health service's own section beats the one of the databases', and flags beat both.
func TestOwnSectionOfTLS(t *testing.T) {
	const file = "[ovnnorth]\nclient-privkey=/nb/key\nclient-cert=/nb/crt\nclient-cacert=/nb/ca\n" +
		"[egressip-healthcheck-tls]\nclient-privkey=/own/key\nclient-cert=/own/crt\nclient-cacert=/own/ca\n" +
		"cert-common-name=egress\n"
	r, err := read(t, file, "--nb-client-cert=/flag/crt")
	if err != nil || r.TLS.Key != "/own/key" || r.TLS.Cert != "/flag/crt" || r.TLS.CA != "/own/ca" ||
		r.TLS.Name != "egress" || len(r.Ignored) > 0 {
		t.Errorf("have %+v, ignored %v, %v", r.TLS, r.Ignored, err)
	}
}

// TestFileOfRanges: OVN-Kubernetes' lines for ranges, MTU and port, which agents take over. To a controller, which has
// no tunnels, the lines about these are nothing that is spelled wrong.
func TestFileOfRanges(t *testing.T) {
	const file = `[default]
mtu=1300
encap-port=6082
cluster-subnets="10.128.0.0/14/23"
[kubernetes]
service-cidrs=172.30.0.0/16
[gateway]
v4-join-subnet=100.65.0.0/16
v6-join-subnet=fd90::/64
v4-masquerade-subnet=169.254.0.0/17
v6-masquerade-subnet=fd69::/112
[clustermanager]
v4-transit-subnet=100.89.0.0/16
v6-transit-subnet=fd91::/64
[ovnkubernetesfeature]
egressip-v4-slot-subnet=100.104.0.0/13
egressip-v6-slot-subnet=fd96:18::/29
`
	path := filepath.Join(t.TempDir(), "ovnkube.conf")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, agent := range []bool{true, false} {
		var c world.Config
		f := flag.NewFlagSet("egret", flag.ContinueOnError)
		reach, subnets, tunnel := settings.Flags(f), settings.SubnetFlags(f), &settings.Tunnel{}
		if agent {
			tunnel = settings.TunnelFlags(f)
		}
		args := []string{"--config-file", path, "--gateway-v6-join-subnet=fd92::/64"}
		if err := errors.Join(f.Parse(args), reach.Read(), subnets.Into(&c)); err != nil || len(reach.Ignored) > 0 {
			t.Fatalf("ignored %v, %v", reach.Ignored, err)
		}
		if agent {
			if err := tunnel.Into(&c); err != nil || c.MTU != 1300 || c.EncapPort != 6082 {
				t.Errorf("MTU %d, port %d, %v", c.MTU, c.EncapPort, err)
			}
		}
		have := fmt.Sprint(c.ClusterSubnets, c.ServiceSubnets, c.JoinSubnets, c.TransitSubnets, c.MasqueradeSubnets,
			c.SlotSubnets)
		if want := "[{10.128.0.0/14 23}] [172.30.0.0/16] [100.65.0.0/16 fd92::/64] [100.89.0.0/16 fd91::/64] " +
			"[169.254.0.0/17 fd69::/112] [100.104.0.0/13 fd96:18::/29]"; have != want {
			t.Errorf("have %s\nwant %s", have, want)
		}
	}
}

func TestTunnelMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"--mtu=500": "--mtu 500: give 576 to 65535 bytes for IPv4", "--encap-port=0": "give a UDP port",
		"--encap-port=70000": "give a UDP port", "--mtu=1279": "--mtu 1279: give 1280 to 65535 bytes for IPv6, of which each link " +
			"carries 1280 (RFC 8200)",
	} {
		f := flag.NewFlagSet("egret", flag.ContinueOnError)
		tunnel := settings.TunnelFlags(f)
		if err := f.Parse([]string{args}); err != nil {
			t.Fatal(err)
		}
		c := compiletest.Config(world.SharedGateway)
		if err := tunnel.Into(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have %v, want %s", args, err, want)
		}
	}
}

func TestDefaults(t *testing.T) {
	if r, err := read(t, ""); err != nil || r.Timeout != time.Second || r.Port != 0 {
		t.Errorf("have %v, port %d, %v", r.Timeout, r.Port, err)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ file, args, want string }{
		{"[ovnkubernetesfeature]\negressip-reachability-total-timeout=soon\n", "",
			"egressip-reachability-total-timeout in [ovnkubernetesfeature]"},
		{"", "--egressip-reachability-total-timeout=-1", "give a number of seconds"},
		{"", "--egressip-node-healthcheck-port=70000", "give a TCP port"},
		{"", "--egressip-reachability-witnesses=172.18.0.10,gateway", `"gateway" is no address`},
		{"", "--nb-client-cert=/certs/tls.crt",
			"lacks --nb-client-cacert (client-cacert in [egressip-healthcheck-tls]) and --nb-client-privkey " +
				"(client-privkey in [egressip-healthcheck-tls])"},
		{"[ovnnorth]\nclient-cert=/certs/tls.crt\nclient-privkey=/certs/tls.key\n", "",
			"lacks --nb-client-cacert (client-cacert in [egressip-healthcheck-tls]): give"},
		{"[ovnnorth]\nclient-cacert=/certs/ca.crt\n", "--nb-client-privkey=/certs/tls.key",
			"lacks --nb-client-cert (client-cert in [egressip-healthcheck-tls]): give"},
		{"", "--config-file=/nowhere", "--config-file"},
	} {
		if _, err := read(t, c.file, strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %s: have %v, want %q", c.file, c.args, err, c.want)
		}
	}
}
