package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/traffic"
)

// metrics are what a program says, by name and labels as in the text: `name{label="value"}`.
type metrics map[string]float64

// scrape asks a node for its agent's or controller's metrics.
func scrape(ctx context.Context, m sandbox.Member, port int) (metrics, error) {
	text, err := fetch(ctx, clientIn(m.Name), url(m.IPs[0], port, "/metrics"))
	if err != nil {
		return nil, err
	}
	out := metrics{}
	for line := range strings.Lines(text) {
		i := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		if i < 0 || line[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[i:]), 64)
		if err != nil {
			return nil, fmt.Errorf("metrics of %s: line %q: %w", m.Name, line, err)
		}
		out[line[:i]] = value
	}
	return out, nil
}

// sum adds up a metric over its labels, those that have all of the given ones (`node="n1"`). has says whether there is
// any.
func (m metrics) sum(name string, labels ...string) (sum float64, has bool) {
	for key, value := range m {
		of, rest, _ := strings.Cut(key, "{")
		missing := func(l string) bool { return !strings.Contains(rest, l) }
		if of == name && !slices.ContainsFunc(labels, missing) {
			sum, has = sum+value, true
		}
	}
	return sum, has
}

// value is the sum alone.
func (m metrics) value(name string, labels ...string) float64 {
	sum, _ := m.sum(name, labels...)
	return sum
}

func label(name, value string) string { return fmt.Sprintf("%s=%q", name, value) }

// controllerMetrics are those of both controllers, added up: a busy machine may have the other one lead at any time.
// What a gauge says of the cluster only the leader's is taken for.
func (c *cluster) controllerMetrics(ctx context.Context) (metrics, error) {
	out := metrics{}
	for _, n := range c.nodes[:2] {
		said, err := scrape(ctx, n, sandbox.ControllerMetricsPort)
		if err != nil {
			return nil, err
		}
		leads := said.value("egret_controller_leader") == 1
		for key, value := range said {
			if leads || !strings.HasPrefix(key, "egret_controller_assigned_egress_ips") {
				out[key] += value
			}
		}
	}
	return out, nil
}

// TestMetrics: a move shows in the metrics of the controllers and of both agents, and a packet that was not translated
// is counted.
func TestMetrics(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1])
	n.runs(pod{name: "a", node: c.nodes[0]})
	e := c.egressIP(t, "metrics", c.number(53), n.itself(), metav1.LabelSelector{})
	e.ready()
	at, next := c.nodes[1], c.nodes[2]
	c.holds(t, at, float64(len(c.number(53))))
	const attempts = 3 // a move during which another controller takes over is not measured
	for i := range attempts {
		err := c.move(t, e, at, next)
		if err == nil {
			break
		}
		if t.Logf("move %d: %v", i, err); i == attempts-1 {
			t.Fatal("no move of three was measured")
		}
		at, next = next, at
	}
	c.agentCounts(t, c.nodes[0])
	c.countsBlocked(t, c.nodes[0])
}

// move moves an EgressIP from a node to another, and is nil if the metrics tell of it.
func (c *cluster) move(t *testing.T, e egressIP, from, to sandbox.Member) error {
	t.Helper()
	ips := float64(len(c.number(53)))
	before, err := c.controllerMetrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.labelEgress(t, to)
	c.unlabelEgress(t, from)
	e.readyOn(to)
	c.holds(t, to, ips)
	c.holds(t, from, 0)
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if err = c.moved(t, before, to, ips); err == nil || time.Since(begin) > lookTimeout {
			return err
		}
	}
}

// moved is nil if the controllers' metrics tell of so many moves since before.
func (c *cluster) moved(t *testing.T, before metrics, to sandbox.Member, ips float64) error {
	now, err := c.controllerMetrics(t.Context())
	if err != nil {
		return err
	}
	for _, m := range []struct {
		name   string
		labels []string
	}{
		{"egret_controller_moves_total", []string{label("cause", "NodeUnlabelled")}},
		{"egret_controller_failover_seconds_count", []string{label("cause", "NodeUnlabelled")}},
		{"egret_controller_programming_seconds_count", nil},
		{"ovnkube_clustermanager_egress_ips_rebalance_total", nil},
	} {
		if grown := now.value(m.name, m.labels...) - before.value(m.name, m.labels...); grown < ips {
			return fmt.Errorf("%s%v grew by %v with a move of %v addresses", m.name, m.labels, grown, ips)
		}
	}
	if have := now.value("egret_controller_assigned_egress_ips", label("node", to.Name)); have != ips {
		return fmt.Errorf("%v egress IPs assigned to %s, want %v", have, to.Name, ips)
	}
	return nil
}

// holds waits until a node's agent says that it holds so many egress IPs.
func (c *cluster) holds(t *testing.T, m sandbox.Member, want float64) {
	t.Helper()
	within(t, soon, func() error {
		said, err := scrape(t.Context(), m, sandbox.AgentMetricsPort)
		if err != nil {
			return err
		}
		if have := said.value("egret_node_held_egress_ips"); have != want {
			return fmt.Errorf("the agent of %s holds %v egress IPs, want %v", m.Name, have, want)
		}
		return nil
	})
}

// agentCounts: what every agent has done by now.
func (c *cluster) agentCounts(t *testing.T, m sandbox.Member) {
	t.Helper()
	said, err := scrape(t.Context(), m, sandbox.AgentMetricsPort)
	if err != nil {
		t.Fatal(err)
	}
	for name, labels := range map[string][]string{
		"egret_node_rounds_total": {label("result", "ok")}, "egret_node_round_seconds_count": nil,
		"egret_node_plane_apply_seconds_count": {label("plane", "flow")},
		"egret_node_cni_seconds_count":         {label("command", "ADD"), label("result", "ok")},
	} {
		if said.value(name, labels...) == 0 {
			t.Errorf("the agent of %s has no %s%v", m.Name, name, labels)
		}
	}
	if _, has := said.sum("egret_node_held_back_pods"); !has {
		t.Errorf("the agent of %s has no egret_node_held_back_pods", m.Name)
	}
	response, err := clientIn(m.Name).Get(url(m.IPs[0], sandbox.AgentMetricsPort, "/healthz"))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("health of %s: %s", m.Name, response.Status)
	}
}

// countsBlocked sends, from a node and with the address of another node's pod as source, what must not leave: the
// bridge drops it, and the agent counts it. (The node's own pods' it would masquerade.)
func (c *cluster) countsBlocked(t *testing.T, m sandbox.Member) {
	t.Helper()
	blocked := func() float64 {
		said, err := scrape(t.Context(), m, sandbox.AgentMetricsPort)
		if err != nil {
			t.Fatal(err)
		}
		return said.value("egret_node_blocked_packets_total", label("path", "bridge"))
	}
	before := blocked()
	subnet := kube.Node(c.node(t, c.nodes[1].Name)).Subnets[0]
	source := subnet.Masked().Addr()
	for range 250 { // no pod has that one here
		source = source.Next()
	}
	alias := netip.PrefixFrom(source, source.BitLen()).String()
	c.on(t, m.Name, "ip", "address", "add", alias, "dev", "lo")
	t.Cleanup(func() { _, _ = c.feed(context.Background(), m.Name, nil, "ip", "address", "del", alias, "dev", "lo") })
	sendFrom(t, m.Name, source, family4or6(c.outside(0), source).ips[0], 5)
	within(t, soon, func() error {
		if grown := blocked() - before; grown < 5 {
			return fmt.Errorf("%v blocked packets, want 5", grown)
		}
		return nil
	})
}

// sendFrom sends UDP datagrams from inside a network namespace, with a source that it has.
func sendFrom(t *testing.T, namespace string, source, to netip.Addr, datagrams int) {
	t.Helper()
	err := sandbox.InNetns(namespace, func() error {
		conn, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(source, 0)),
			net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, traffic.Port)))
		if err != nil {
			return err
		}
		defer conn.Close()
		for range datagrams {
			if _, err := conn.Write([]byte("untranslated")); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
