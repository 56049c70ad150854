package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/probe/probetest"
	"github.com/egret-net/egret/internal/sandbox"
)

// tlsPort is where agents serve while they have a certificate.
const tlsPort = 9107

// TestHealthTLS: agents and controllers are given certificates, which are exchanged for those of another authority: the
// agent that starts anew with them loses nothing, while one that then shows a stranger's is missed, until it has a
// right one.
func TestHealthTLS(t *testing.T) {
	c := theCluster(t)
	if c.Options().GatewayMode != sandbox.Shared {
		t.Skip("probes do not depend on the gateway mode")
	}
	first, second, stranger := probetest.NewAuthority(t, "first"), probetest.NewAuthority(t, "second"),
		probetest.NewAuthority(t, "stranger")
	c.probeWithTLS(t, first)
	n := c.namespace(t, nil)
	hosting, other := c.nodes[1], c.nodes[2]
	// The other runs no controller: one that reads a stranger's files would trust its own node's agent, and no other.
	c.labelEgress(t, hosting)
	e := c.egressIP(t, "tls", c.number(57)[:1], n.itself(), metav1.LabelSelector{})
	before := e.ready()
	c.labelEgress(t, other)
	within(t, soon, func() error { return c.shows(t, hosting, first) })
	c.certify(t, second, c.nodes...)
	c.restart(t, "egret-node", hosting)
	within(t, soon, func() error { return c.shows(t, hosting, second) })

	// Controllers that have not got an answer of an agent yet since they were started give it five times the grace.
	for _, controller := range c.nodes[:2] {
		within(t, soon, func() error { return c.connected(t, controller, other) })
	}
	c.certify(t, stranger, other)
	c.restart(t, "egret-node", other)
	within(t, agentAwayTimeout, func() error { return c.missing(other, 1) })
	if err := c.missing(hosting, 0); err != nil {
		t.Error("with a new certificate the agent was missed, earlier than the one with a stranger's: ", err)
	}
	if after := e.ready(); !maps.Equal(before, after) {
		t.Errorf("moved from %v to %v", before, after)
	}
	c.certify(t, second, other)
	c.restart(t, "egret-node", other)
	within(t, agentAwayTimeout, func() error { return c.missing(other, 0) })
}

// probeWithTLS has controllers probe, and agents serve, with certificates of an authority until the test ends.
func (c *cluster) probeWithTLS(t *testing.T, by *probetest.Authority) {
	t.Helper()
	restart := func() {
		c.restart(t, "egret-node", c.nodes...)
		c.restart(t, "egret-controller", c.nodes[:2]...)
	}
	t.Cleanup(restart)
	for _, n := range c.nodes {
		file := filepath.Join(c.etc(n), "egret.conf")
		was, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { must(t, os.WriteFile(file, was, 0o644)) })
		const more = "[ovnkubernetesfeature]\negressip-node-healthcheck-port=%d\n[ovnnorth]\nclient-privkey=%[2]s/tls.key\nclient-cert=%[2]s/tls.crt\n" +
			"client-cacert=%[2]s/ca.crt\ncert-common-name=egret\n"
		// what comes later in a file counts
		must(t, os.WriteFile(file, fmt.Appendf(was, more, tlsPort, "/etc/egret/health"), 0o644))
	}
	c.certify(t, by, c.nodes...)
	restart()
}

// certify gives nodes new certificates of an authority.
func (c *cluster) certify(t *testing.T, by *probetest.Authority, nodes ...sandbox.Member) {
	t.Helper()
	for _, n := range nodes {
		dir := filepath.Join(c.etc(n), "health")
		must(t, os.MkdirAll(dir, 0o755))
		by.Write(dir, "egret")
	}
}

// etc is a node's /etc/egret.
func (c *cluster) etc(n sandbox.Member) string {
	return filepath.Join(c.Options().StateDir, c.Options().Name, "nodes", n.Name, "etc")
}

// restart ends a process of nodes, to be started again at once.
func (c *cluster) restart(t *testing.T, process string, nodes ...sandbox.Member) {
	t.Helper()
	for _, n := range nodes {
		within(t, soon, func() error { return c.KillProcess(context.Background(), n.Name, process) })
	}
}

// shows is nil if the agent of a node shows a certificate of an authority.
func (c *cluster) shows(t *testing.T, n sandbox.Member, of *probetest.Authority) error {
	address := netip.AddrPortFrom(c.management(t, n.Name)[0], tlsPort).String()
	return sandbox.InNetns(n.Name, func() error {
		config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: lookTimeout}, "tcp", address, config)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.ConnectionState().PeerCertificates[0].Verify(x509.VerifyOptions{Roots: of.Pool()})
		return err
	})
}

// connected is nil if the controller of a node has a connection to the agent of another.
func (c *cluster) connected(t *testing.T, controller, agent sandbox.Member) error {
	open := c.on(t, controller.Name, "ss", "-Htn", "state", "established", "dport", "=", fmt.Sprint(":", tlsPort))
	for _, ip := range c.management(t, agent.Name) {
		if strings.Contains(open, ip.String()) {
			return nil
		}
	}
	return fmt.Errorf("the controller on %s has no connection to the agent on %s; those it has\n%s", controller.Name,
		agent.Name, open)
}

// missing is nil if so many controllers, of which the leader alone tells, say that the agent of a node is away, and
// that is all they say of it.
func (c *cluster) missing(n sandbox.Member, want int) error {
	said, err := c.controllerMetrics(context.Background())
	if err != nil {
		return err
	}
	unreachable, node := "egret_controller_node_unreachable", label("node", n.Name)
	if away, all := said.value(unreachable, node, label("reason", "AgentAway")), said.value(unreachable,
		node); away != all || int(away) != want {
		return fmt.Errorf("to %g controllers node %s is unreachable, to %g because its agent is away; want %d", all,
			n.Name, away, want)
	}
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
