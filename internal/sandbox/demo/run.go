package demo

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/sandbox"
)

const minNodes = 3 // two that host an address each, and one for an address to move to

// demo is one run.
type demo struct {
	cluster   *sandbox.Cluster
	config    *rest.Config
	client    kubernetes.Interface
	egressIPs rest.Interface
	screen    screen
	wrong     []string // the lines that were
}

// Run brings the sandbox up, deploys pods, applies the example EgressIP, shows which sources servers see, moves an
// address to another node and shows them again. It errs if anything does not come about, or if one line is wrong; out
// says which. The cluster stays up in any case.
func Run(ctx context.Context, o sandbox.Options, out io.Writer) error {
	if o.Nodes < minNodes || o.ExternalHosts < 1 {
		return fmt.Errorf("the demo needs %d nodes and an external host", minNodes)
	}
	cluster, err := sandbox.Up(ctx, o, out)
	if err != nil {
		return err
	}
	d, err := newDemo(cluster, newScreen(out))
	if err != nil {
		return err
	}
	err = d.showAll(ctx)
	d.lookAround()
	return err
}

func newDemo(c *sandbox.Cluster, s screen) (*demo, error) {
	config, err := kube.Config(c.Kubeconfig(), 100, "egret-demo")
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	clients, err := kube.NewClients(config)
	if err != nil {
		return nil, err
	}
	return &demo{cluster: c, config: config, client: client, egressIPs: clients.EgressIP, screen: s}, nil
}

func (d *demo) showAll(ctx context.Context) error {
	// The first node hosts no address in the beginning, so that pods on and off egress nodes are seen.
	nodes := d.cluster.Nodes()
	standby, egress := nodes[0].Name, []string{nodes[1].Name, nodes[2].Name}

	d.screen.beginPart("Pods on every node, two egress nodes, and the EgressIP")
	if err := d.setUp(ctx, egress); err != nil {
		return err
	}
	pods, err := d.listPods(ctx)
	if err != nil {
		return err
	}
	if err := d.showTraffic(ctx, pods, "What the servers see"); err != nil {
		return err
	}
	if err := d.showPlaces(ctx); err != nil {
		return err
	}
	if err := d.showMove(ctx, pods, standby); err != nil {
		return err
	}
	return d.printSummary()
}

// showTraffic shows, below a title, what every pod's connections look like at every destination.
func (d *demo) showTraffic(ctx context.Context, p pods, title string) error {
	egressIPs, err := d.egressAddresses(ctx)
	if err != nil {
		return err
	}
	d.screen.beginPart(title)
	rows, err := d.probeAll(ctx, p, egressIPs)
	if err != nil {
		return err
	}
	d.judgeRows(title, rows)
	if missing := unusedAddresses(rows, egressIPs); len(missing) > 0 {
		d.wrong = append(d.wrong, title+": no connection left with "+joinAlternatives(missing))
	}
	return nil
}

// judgeRows keeps the wrong rows of a table for the summary.
func (d *demo) judgeRows(title string, rows []row) {
	for _, r := range rows {
		if problem := r.problemText(); problem != "" {
			d.wrong = append(d.wrong,
				fmt.Sprintf("%s: %s on %s to %s: seen %s; %s", title, r.pod, r.node, r.destination, r.seenText(),
					problem))
		}
	}
}

func (d *demo) printSummary() error {
	if len(d.wrong) == 0 {
		d.screen.printLine("\nEvery line was right.")
		return nil
	}
	d.screen.printLine("\nWrong:\n  %s", strings.Join(d.wrong, "\n  "))
	d.screen.printLine("\nLook at the EgressIP's conditions and Events, at what the nodes say they hold, and at the agent " +
		"on the pod's node:")
	d.screen.printLine("  %s kubectl describe eip %s", d.sandboxCommand(), exampleName)
	d.screen.printLine("  %s kubectl get egressnodes -o yaml", d.sandboxCommand())
	d.screen.printLine("  %s exec NODE -- tail -n 50 /var/log/egret/egret-node.log", d.sandboxCommand())
	return fmt.Errorf("%d of the demo's lines were wrong", len(d.wrong))
}

func (d *demo) lookAround() {
	nodes, host := d.cluster.Nodes(), d.cluster.ExternalHosts()[0].Name
	d.screen.beginPart("The cluster stays up. Look around:")
	d.screen.printLine("  %s kubectl get eip", d.sandboxCommand())
	d.screen.printLine("  %s kubectl get pods -A -o wide", d.sandboxCommand())
	d.screen.printLine("  %s exec %s -- ovn-nbctl lr-policy-list ovn_cluster_router", d.sandboxCommand(), nodes[0].Name)
	d.screen.printLine("  %s exec %s -- tcpdump -ni %s tcp port %d", d.sandboxCommand(), host, uplink, serverPort)
	d.screen.printLine("  %s power-off %s", d.sandboxCommand(), nodes[2].Name)
	d.screen.printLine("  %s down", d.sandboxCommand())
}

// sandboxCommand is how a user calls egret-sandbox for this cluster.
func (d *demo) sandboxCommand() string {
	if name := d.cluster.Options().Name; name != sandbox.Defaults().Name {
		return "bin/egret-sandbox --name " + name
	}
	return "bin/egret-sandbox"
}

// sleepUnlessDone sleeps, and returns ctx's error if that ends first.
func sleepUnlessDone(ctx context.Context, t time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(t):
		return nil
	}
}

func ofFamily(addrs []netip.Addr, like netip.Addr) []netip.Addr {
	var same []netip.Addr
	for _, a := range addrs {
		if a.Is4() == like.Is4() {
			same = append(same, a)
		}
	}
	return same
}
