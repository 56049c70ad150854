package manifests

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/egret-net/egret/internal/probe/probetest"
	"github.com/egret-net/egret/internal/sandbox"
)

// metricsPorts of agents and controllers, as deploy/cluster has them.
const (
	agentMetrics      = sandbox.AgentMetricsPort
	controllerMetrics = sandbox.ControllerMetricsPort
)

// readers are what /metrics is asked with.
type readers struct{ prometheus, nobody *tls.Config }

// certifyMetrics makes the Secret with which /metrics is served over TLS, to who has a certificate of the Secret's
// authority: one certificate for all nodes, with their addresses.
func (l *lab) certifyMetrics() readers {
	l.t.Helper()
	own, other := probetest.NewAuthority(l.t, "metrics"), probetest.NewAuthority(l.t, "readers")
	var ips []net.IP
	for _, n := range l.nodes {
		ips = append(ips, n.IPs[0].AsSlice())
	}
	server, reader := own.WriteServer(l.t.TempDir(), nil, ips...), other.Write(l.t.TempDir(), "prometheus")
	l.kubectl("-n", "egret-system", "create", "secret", "generic", "egret-metrics", "--from-file=tls.key="+server.Key,
		"--from-file=tls.crt="+server.Cert, "--from-file=ca.crt="+reader.CA)
	cert, err := tls.LoadX509KeyPair(reader.Cert, reader.Key)
	if err != nil {
		l.t.Fatal(err)
	}
	return readers{&tls.Config{RootCAs: own.Pool(), Certificates: []tls.Certificate{cert}},
		&tls.Config{RootCAs: own.Pool()}}
}

// measured: everybody's metrics are for readers with a certificate, and life is told on the node alone.
func (l *lab) measured(as readers) {
	l.t.Helper()
	for _, n := range l.nodes {
		for port, name := range map[int]string{agentMetrics: "egret_node_", controllerMetrics: "egret_controller_"} {
			at := netip.AddrPortFrom(n.IPs[0], uint16(port))
			l.eventually(fmt.Sprintf("metrics of %s", at), func() error {
				text, err := scrape(n.Name, at, as.prometheus)
				if err == nil && !strings.Contains(text, "\n"+name) {
					err = fmt.Errorf("no %s in %q", name, text)
				}
				return err
			})
			if text, err := scrape(n.Name, at, as.nobody); err == nil || !strings.Contains(err.Error(), "401") {
				l.t.Errorf("%s tells somebody without a certificate: %q %v", at, text, err)
			}
			if out, err := l.ExecIn(l.t.Context(), n.Name, "curl", "-fsS", "--max-time", "5",
				"http://"+at.String()+"/metrics"); err == nil {
				l.t.Errorf("%s tells somebody without TLS: %s", at, out)
			}
		}
		for _, port := range []int{9411, 9412} {
			life := fmt.Sprintf(":%d/healthz", port)
			if out, err := l.ExecIn(l.t.Context(), n.Name, "curl", "-fsS", "--max-time", "20",
				"http://127.0.0.1"+life); err != nil {
				l.t.Errorf("%s%s: %v %s", n.Name, life, err, out)
			}
			if out, err := l.ExecIn(l.t.Context(), n.Name, "curl", "-fsS", "--max-time", "5",
				"http://"+n.IPs[0].String()+life); err == nil {
				l.t.Errorf("%s%s answers outside, too: %s", n.IPs[0], life, out)
			}
		}
	}
}

// scrape is /metrics, as a host asks for it.
func scrape(host string, at netip.AddrPort, config *tls.Config) (string, error) {
	dial := func(ctx context.Context, network, address string) (c net.Conn, err error) {
		err = sandbox.InNetns(host, func() (err error) {
			c, err = new(net.Dialer).DialContext(ctx, network, address)
			return err
		})
		return c, err
	}
	transport := &http.Transport{DialContext: dial, TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Timeout: 20 * time.Second, Transport: transport}).Get("https://" + at.String() +
		"/metrics")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return string(text), err
}
