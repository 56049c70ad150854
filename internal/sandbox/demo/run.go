package demo

import (
	"context"
	"errors"
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

// Run brings the sandbox up, deploys pods, applies the example EgressIP, shows which sources servers see, moves an address
// to another node and shows them again. It errs if anything does not come about, or if one line is wrong; out says which.
// The cluster stays up in any case.
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
	err = d.show(ctx)
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

func (d *demo) show(ctx context.Context) error {
	// The first node hosts no address in the beginning, so that pods on and off egress nodes are seen.
	nodes := d.cluster.Nodes()
	standby, egress := nodes[0].Name, []string{nodes[1].Name, nodes[2].Name}

	d.screen.title("Pods on every node, two egress nodes, and the EgressIP")
	if err := d.setUp(ctx, egress); err != nil {
		return err
	}
	pods, err := d.pods(ctx)
	if err != nil {
		return err
	}
	if err := d.traffic(ctx, pods); err != nil {
		return err
	}
	if err := d.places(ctx); err != nil {
		return err
	}
	if err := d.move(ctx, pods, standby); err != nil {
		return err
	}
	return d.summary()
}

// traffic shows what every pod's connections look like at every destination.
func (d *demo) traffic(ctx context.Context, p pods) error {
	egressIPs, err := d.addresses(ctx)
	if err != nil {
		return err
	}
	d.screen.title("What the servers see")
	rows, err := d.probeAll(ctx, p, egressIPs)
	if err != nil {
		return err
	}
	d.judge(rows)
	if missing := unused(rows, egressIPs); len(missing) > 0 {
		d.wrong = append(d.wrong, "no connection left with "+alternatives(missing))
	}
	return nil
}

func (d *demo) judge(rows []row) {
	for _, r := range rows {
		if problem := r.problem(); problem != "" {
			d.wrong = append(d.wrong, fmt.Sprintf("%s on %s to %s: seen %s, %s", r.pod, r.node, r.destination, r.seen(), problem))
		}
	}
}

func (d *demo) summary() error {
	if len(d.wrong) == 0 {
		d.screen.say("\nEvery line was right.")
		return nil
	}
	d.screen.say("\nWrong:\n  %s", strings.Join(d.wrong, "\n  "))
	command := "egret-sandbox --name " + d.cluster.Options().Name
	d.screen.say("Look at the EgressIP's conditions and Events:     %s kubectl describe eip %s", command, exampleName)
	d.screen.say("what the nodes say they hold:                     %s kubectl get egressnodes -o yaml", command)
	d.screen.say("the log of the agent on the pod's node:           %s exec NODE -- cat /var/log/egret/egret-node.log", command)
	return errors.New("the demo has wrong lines")
}

func (d *demo) lookAround() {
	command := "bin/egret-sandbox"
	if name := d.cluster.Options().Name; name != sandbox.Defaults().Name {
		command += " --name " + name
	}
	node := d.cluster.Nodes()[1].Name
	d.screen.title("The cluster stays up. Look around:")
	d.screen.say("  %s kubectl get eip,pods -A -o wide", command)
	d.screen.say("  %s exec %s -- ovn-nbctl lr-policy-list ovn_cluster_router", command, node)
	d.screen.say("  %s exec %s -- tcpdump -ni eth0 tcp port %d", command, d.cluster.ExternalHosts()[0].Name, serverPort)
	d.screen.say("  %s power-off %s", command, node)
	d.screen.say("  %s down", command)
}

// pause sleeps, and returns ctx's error if that ends first.
func pause(ctx context.Context, t time.Duration) error {
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
