package e2e

import (
	"context"
	"net/netip"
	"slices"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// otherKinds repeats the test with a node that holds addresses on a link, addresses to one host outside
// (EgressIPTraffic), and those of two EgressServices. Each kind has two objects, a and b. Pods come under another
// object of their kind. One pod leaves an EgressService for an EgressIP, and later an EgressIP for an EgressService.
// New pods of the objects b have the addresses of former pods of the objects a.
func (d *deadHolder) otherKinds() {
	for _, p := range []string{"stays", "relabelled"} {
		d.n.deletes(p)
	}
	d.to = d.c.hosts[0].IPs
	d.holdsLinks()
	d.holdsTraffic()
	for name, group := range map[string]string{"of-service-b": "service-b", "link": "link-a", "service": "service-a",
		"traffic": "traffic-a", "crosses": "service-a"} {
		d.n.runs(d.pod(name, group))
	}
	for i, service := range []string{"service-a", "service-b"} {
		d.holdsService(service, 220+2*i)
	}
	var former []netip.Addr
	for _, kind := range heldKinds { // these have the highest addresses
		p := d.pod("former-"+kind, kind+"-a")
		p.sends = false
		d.n.runs(p)
		former = append(former, d.n.ips[p.name]...)
	}
	within(d.T, soon, func() error { return d.flow("of-service-b", "link", "service", "traffic", "crosses") })
	d.hangsBeneath()
	d.diesBeneath(former)
}

var heldKinds = []string{"link", "service", "traffic"}

func (d *deadHolder) pod(name, group string) pod {
	return pod{name: name, node: d.c.nodes[0], labels: d.in(group).MatchLabels, sends: true}
}

func (d *deadHolder) holdsLinks() {
	for i, group := range []string{"link-a", "link-b"} {
		d.c.egressIP(d.T, "dead-holder-"+group, d.c.secondaryNumber(236+i), d.n.itself(), d.in(group)).
			readyOn(d.c.nodes[2])
	}
}

// holdsTraffic makes two EgressIPs for packets to one host outside.
func (d *deadHolder) holdsTraffic() {
	b := byDestination{d.T, d.c, d.n}
	b.traffic(d.n.name, d.n.name, b.networks(health)...)
	networks := selects(map[string]string{"for": d.n.name})
	for i, group := range []string{"traffic-a", "traffic-b"} {
		pods := d.in(group)
		d.c.egressIPOf(d.T, "dead-holder-"+group, v1.EgressIPSpec{EgressIPs: texts(d.c.number(240 + i)),
			NamespaceSelector: d.n.itself(), PodSelector: pods, TrafficSelector: &networks}).readyOn(d.c.nodes[2])
	}
}

// holdsService makes a Service of the group of its name, and has the node be its host.
func (d *deadHolder) holdsService(group string, number int) {
	d.n.balances(group, number, func(s *corev1.ServiceSpec) { s.Selector = d.in(group).MatchLabels })
	s := egressService{d.T, d.c, d.n.name, group}
	s.creates(v1.EgressServiceSpec{NodeSelector: on(d.c.nodes[2])})
	s.isReadyOn(d.node)
}

// hangsBeneath stops the holder's agent, and has pods come under other objects.
func (d *deadHolder) hangsBeneath() {
	d.signal(syscall.SIGSTOP)
	for _, kind := range heldKinds {
		d.n.label(kind, d.in(kind+"-b").MatchLabels)
	}
	d.n.label("crosses", d.in("link-b").MatchLabels)
	d.silent("link", "service", "traffic", "crosses")
	must(d.T, d.flow("of-service-b"))
	d.signal(syscall.SIGCONT)
	d.goesOn("link", "service", "traffic", "crosses")
}

// diesBeneath kills the holder's agent. Then pods come back under their first objects, and new pods get the addresses
// of deleted ones.
func (d *deadHolder) diesBeneath(former []netip.Addr) {
	must(d.T, d.c.StopProcess(context.WithoutCancel(d.Context()), d.node, "egret-node"))
	for _, kind := range heldKinds {
		d.n.label(kind, d.in(kind+"-a").MatchLabels)
	}
	d.n.label("crosses", d.in("service-a").MatchLabels)
	d.detached("former-link", "former-service", "former-traffic")
	must(d.T, d.c.KillProcess(d.Context(), d.c.nodes[0].Name, "egret-node"))
	var successors []pod
	for _, kind := range heldKinds {
		successors = append(successors, d.pod("successor-of-"+kind, kind+"-b"))
	}
	d.n.runs(successors...)
	var silent []string
	for _, p := range successors {
		silent = append(silent, p.name)
		if ip := d.n.ips[p.name][0]; !slices.Contains(former, ip) {
			d.Errorf("%s has address %s, want one of %v", p.name, ip, former)
		}
	}
	silent = append(silent, "link", "service", "traffic", "crosses")
	d.silent(silent...)
	must(d.T, d.flow("of-service-b"))
	d.c.startAgent(d.T, d.node)
	d.goesOn(silent...)
}

// signal reaches the holder's agent, also after the test has failed.
func (d *deadHolder) signal(s syscall.Signal) {
	must(d.T, d.c.SignalProcess(context.WithoutCancel(d.Context()), d.node, "egret-node", s))
}
