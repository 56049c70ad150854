package e2e

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/egret-net/egret/internal/sandbox"
)

// alertTimeout is within what time somebody is told that pods leave with their node's address.
const alertTimeout = 15 * time.Second

// prometheus is Debian's, on a host outside, with the alerts of deploy/monitoring. Alerts that wait for minutes wait a
// second here: TestPromtool shows how long they wait otherwise.
type prometheus struct {
	t    *testing.T
	host string
}

// startPrometheus returns when all programs have been scraped.
func (c *cluster) startPrometheus(t *testing.T) prometheus {
	t.Helper()
	dir, p := t.TempDir(), prometheus{t, c.hosts[0].Name}
	writeFile(t, filepath.Join(dir, "rules.yaml"), impatientRules(t))
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yaml]\nscrape_configs:\n"
	targets := 0
	for job, port := range map[string]int{"egret-node": sandbox.AgentMetricsPort,
		"egret-controller": sandbox.ControllerMetricsPort} {
		var at []string
		for i, n := range c.nodes {
			if job == "egret-node" || i < sandbox.ControllerNodes {
				at = append(at, fmt.Sprintf("%q", netip.AddrPortFrom(n.IPs[0], uint16(port))))
			}
		}
		targets += len(at)
		config += fmt.Sprintf("- {job_name: %s, static_configs: [{targets: [%s]}]}\n", job, strings.Join(at, ", "))
	}
	writeFile(t, filepath.Join(dir, "prometheus.yaml"), []byte(config))
	args, err := c.Command(p.host, "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yaml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:9090")
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), args[0], args[1:]...)
	if err := run.Start(); err != nil {
		t.Fatalf("start Debian's prometheus: %v: run hack/deps prometheus", err)
	}
	t.Cleanup(func() { _ = run.Wait() })
	within(t, podsTimeout, func() error {
		var answer struct{ Data struct{ Result []any } }
		if err := p.ask("query?query=up==1", &answer); err != nil || len(answer.Data.Result) == targets {
			return err
		}
		return fmt.Errorf("%d of %d programs are scraped", len(answer.Data.Result), targets)
	})
	return p
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// impatientRules returns the alerts as Prometheus reads them.
func impatientRules(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../deploy/monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var object struct{ Spec json.RawMessage }
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`"for":"[^"]*"`).ReplaceAll(object.Spec, []byte(`"for":"1s"`))
}

func (p prometheus) ask(what string, into any) error {
	text, err := fetch(p.t.Context(), clientIn(p.host), "http://127.0.0.1:9090/api/v1/"+what)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), into)
}

// firing returns the names of alerts that fire.
func (p prometheus) firing() (names []string, err error) {
	var answer struct {
		Data struct {
			Alerts []struct {
				Labels struct{ Alertname string }
				State  string
			}
		}
	}
	err = p.ask("alerts", &answer)
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			names = append(names, a.Labels.Alertname)
		}
	}
	return names, err
}

// fires waits until an alert fires, and tells how long that took.
func (p prometheus) fires(alert string, limit time.Duration) {
	p.t.Helper()
	took := within(p.t, limit, func() error {
		names, err := p.firing()
		if err == nil && !slices.Contains(names, alert) {
			err = fmt.Errorf("%s does not fire, but %v", alert, names)
		}
		return err
	})
	p.t.Logf("%s fires after %v", alert, took)
}

// becomesQuiet waits until no alert fires.
func (p prometheus) becomesQuiet() {
	p.t.Helper()
	within(p.t, podsTimeout, func() error {
		names, err := p.firing()
		if err == nil && len(names) > 0 {
			err = fmt.Errorf("%v fire", names)
		}
		return err
	})
}

// staysQuiet looks for some seconds whether an alert fires: in them every program is scraped anew.
func (p prometheus) staysQuiet() {
	p.t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		if names, err := p.firing(); err != nil || len(names) > 0 {
			p.t.Errorf("in a quiet cluster %v fire (%v)", names, err)
		}
	}
}

// TestAlerts: in a quiet cluster no alert fires. Each of six faults has its alert fire, and no alert fires when they
// are over. Where pods leave with their node's address, that takes 15 s at most.
func TestAlerts(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n, p := c.namespace(t, nil), c.startPrometheus(t)
	c.labelEgress(t, c.nodes[1])
	n.runs(pod{name: "a", node: c.nodes[0]})
	e := c.egressIP(t, "alerts", c.number(57), n.itself(), metav1.LabelSelector{})
	e.ready()
	p.becomesQuiet()
	p.staysQuiet()

	c.unlabelEgress(t, c.nodes[1])
	p.fires("EgretPodsLeaveWithNodeAddress", alertTimeout)
	p.fires("EgretObjectNotReady", soon)
	c.holdsBack(t, n, p)
	e.ready()
	p.becomesQuiet()
	c.alertsOfAddress(t, n, p)
	c.alertsOfFirewall(t, p)
	p.becomesQuiet()
	for _, m := range c.nodes[:sandbox.ControllerNodes] {
		c.stopsProcess(t, m, "egret-controller")
	}
	p.fires("EgretNoLeader", soon)
	for _, m := range c.nodes[:sandbox.ControllerNodes] {
		if err := c.StartProcess(t.Context(), m.Name, "egret-controller"); err != nil {
			t.Error(err)
		}
	}
	p.becomesQuiet()
}

// holdsBack has a pod start while the one egress node cannot hold its address.
func (c *cluster) holdsBack(t *testing.T, n *namespace, p prometheus) {
	t.Helper()
	c.stopsProcess(t, c.nodes[1], "ovn-controller")
	c.labelEgress(t, c.nodes[1])
	n.creates(pod{name: "b", node: c.nodes[0]})
	p.fires("EgretPodsHeldBack", podsTimeout)
	if err := c.StartProcess(t.Context(), c.nodes[1].Name, "ovn-controller"); err != nil {
		t.Fatal(err)
	}
}

// alertsOfAddress has a machine outside have an egress IP.
func (c *cluster) alertsOfAddress(t *testing.T, n *namespace, p prometheus) {
	t.Helper()
	ip := c.number(91)[0]
	alias := netip.PrefixFrom(ip, ip.BitLen()).String()
	c.on(t, c.hosts[1].Name, "ip", "addr", "add", alias, "dev", "eth0")
	remove := func() { c.on(t, c.hosts[1].Name, "ip", "addr", "del", alias, "dev", "eth0") }
	defer remove()
	taken := c.egressIP(t, "alerts-taken", []netip.Addr{ip}, n.itself(), metav1.LabelSelector{})
	p.fires("EgretAddressInUse", podsTimeout)
	taken.delete()
}

// alertsOfFirewall has somebody's rules drop what a host forwards.
func (c *cluster) alertsOfFirewall(t *testing.T, p prometheus) {
	t.Helper()
	host := c.nodes[2].Name
	c.on(t, host, "nft", "add table inet alerts; add chain inet alerts forward "+
		"{ type filter hook forward priority 0; policy drop; }")
	defer c.on(t, host, "nft", "delete", "table", "inet", "alerts")
	p.fires("EgretNodeProblem", podsTimeout)
}
