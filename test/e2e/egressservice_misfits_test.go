package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// misfit is an EgressService, or a Service of it, that cannot be served as it is written.
type misfit struct {
	name   string
	begins func(s *behindService)
	// reason is Ready's, and names what is the matter; "": it is served all the same.
	reason string
	// says is part of what condition Assigned, or Ready where there is a host, tells.
	says string
	// leaves is what the pods leave with meanwhile.
	leaves func(s *behindService)
	ends   func(s *behindService)
}

// Where the pods of a misfit leave.
func asNodes(s *behindService) {
	s.Helper()
	for i, p := range behindPods {
		s.n.from(p).to(s.c.outside(0)).formerly(s.b.balancer.ips...).soonArrivesAs(s.c.nodes[i].IPs...)
	}
}

func asService(s *behindService) {
	s.Helper()
	for _, p := range behindPods {
		s.n.from(p).to(s.c.outside(0)).soonArrivesAs(s.b.balancer.ips...)
	}
}

func nowhere(s *behindService) {
	s.Helper()
	for _, p := range behindPods {
		s.n.from(p).to(s.c.outside(0)).soonReachesNothing()
	}
}

// byMainTable: what the table has no route to leaves by the main table, with the Service's address, and so do answers.
func byMainTable(s *behindService) {
	s.Helper()
	asService(s)
	for _, h := range s.c.hosts {
		s.c.from(s.T, h).to(s.b.balancer).answeredBy(behindPods...)
	}
}

// refusesRest: neither pods' packets nor answers leave by another table than one that ends with a refusal.
func refusesRest(s *behindService) {
	s.Helper()
	nowhere(s)
	for _, h := range s.c.hosts {
		s.c.from(s.T, h).to(s.b.balancer).soonReachesNothing()
	}
}

// misfitNumber is that of the Service's addresses.
const misfitNumber = 64

// noDefault is a routing table that leads to one address.
const noDefault = "4243"

func misfits() []misfit {
	ips := func(s *behindService) []netip.Addr { return s.b.balancer.ips }
	return []misfit{
		{"no such Service", (*behindService).withoutService, "NoService", "there is no Service", asNodes,
			func(s *behindService) { s.serves(misfitNumber) }},
		{"not a LoadBalancer", func(s *behindService) { s.patchService(`{"spec":{"type":"ClusterIP"}}`) },
			"NotLoadBalancer", "not of type LoadBalancer", asNodes, func(s *behindService) {
				s.patchService(`{"spec":{"type":"LoadBalancer"}}`)
				s.n.ingress("one", ips(s))
			}},
		{"no ingress IP yet", (*behindService).withoutIngress, "NoIngressIP", "no ingress IP yet",
			asNodes, func(s *behindService) { s.n.ingress("one", ips(s)) }},
		{"several ingress IPs of a family", func(s *behindService) {
			s.n.ingress("one", concat(s.c.beyond(misfitNumber+2), ips(s)))
		}, "", "further ingress IPs are no source: 192.0.2.66", asService,
			func(s *behindService) { s.n.ingress("one", ips(s)) }},
		{"ingress IPs of a node", func(s *behindService) { s.n.ingress("one", s.c.nodes[2].IPs) },
			"IngressIPConflict", "is an address of node ", asNodes,
			func(s *behindService) { s.n.ingress("one", ips(s)) }},
		{"no endpoints", func(s *behindService) { s.b.goesTo() }, "NoEndpoints", "has no endpoints", asNodes,
			func(s *behindService) { s.b.goesTo(behindPods...) }},
		{"host-networked endpoints", func(s *behindService) { s.b.goesTo(s.c.nodes[0].Name, s.c.nodes[1].Name) },
			"HostNetworkEndpoints", "are not of the pod network", asNodes,
			func(s *behindService) { s.b.goesTo(behindPods...) }},
		{"unknown network", func(s *behindService) { s.patch(`{"spec":{"network":"nosuch"}}`) }, "UnknownNetwork",
			"no routing table named nosuch", byMainTable,
			func(s *behindService) { s.patch(`{"spec":{"network":null}}`) }},
		{"table without default route", (*behindService).withoutDefault, "", "pods leave through",
			byMainTable, func(s *behindService) { s.patch(`{"spec":{"network":null}}`) }},
		{"table that refuses the rest", (*behindService).refuses, "NoDefaultRoute", "refuses what it has no route to",
			refusesRest, func(s *behindService) { s.patch(`{"spec":{"network":null}}`) }},
		{"selector matching no node", func(s *behindService) {
			s.patch(`{"spec":{"nodeSelector":{"matchLabels":{"kubernetes.io/hostname":"nosuch"}}}}`)
		}, "NoMatchingNode", "no node matches spec.nodeSelector", asNodes,
			func(s *behindService) { s.moveTo(s.c.nodes[0]) }},
		{"selector that cannot be read", (*behindService).withoutSelector, "InvalidSelector", "is dropped", nowhere,
			func(s *behindService) { s.patch(`{"spec":{"nodeSelector":{"matchLabels":{"my color":null}}}}`) }},
	}
}

func (s *behindService) patchService(patch string) {
	s.Helper()
	_, err := s.c.api.CoreV1().Services(s.n.name).Patch(s.Context(), "one", mergePatch, []byte(patch),
		metav1.PatchOptions{})
	must(s.T, err)
}

func (s *behindService) withoutIngress() {
	s.Helper()
	_, err := s.c.api.CoreV1().Services(s.n.name).Patch(s.Context(), "one", mergePatch,
		[]byte(`{"status":{"loadBalancer":{"ingress":null}}}`), metav1.PatchOptions{}, "status")
	must(s.T, err)
}

func (s *behindService) withoutService() {
	s.Helper()
	must(s.T, s.c.api.CoreV1().Services(s.n.name).Delete(s.Context(), "one", metav1.DeleteOptions{}))
}

// withoutDefault has it leave by a table that every node has, with one route.
func (s *behindService) withoutDefault() {
	s.Helper()
	for _, m := range s.c.nodes {
		for _, ip := range s.c.beyond(200) {
			to := netip.PrefixFrom(ip, ip.BitLen()).String()
			s.c.on(s.T, m.Name, "ip", "route", "replace", to, "dev", link, "table", noDefault)
			s.Cleanup(func() {
				_, _ = s.c.feed(context.Background(), m.Name, nil, "ip", "route", "del", to, "table", noDefault)
			})
		}
	}
	s.patch(`{"spec":{"network":"` + noDefault + `"}}`)
}

// refuses has it leave by that table, with a route that refuses all else.
func (s *behindService) refuses() {
	s.Helper()
	s.withoutDefault()
	for _, m := range s.c.nodes {
		for _, flag := range []string{"-4", "-6"} {
			route := []string{"unreachable", "default", "metric", "4278198272", "table", noDefault}
			s.c.on(s.T, m.Name, slices.Concat([]string{"ip", flag, "route", "replace"}, route)...)
			s.Cleanup(func() {
				del := slices.Concat([]string{"ip", flag, "route", "del"}, route)
				_, _ = s.c.feed(context.Background(), m.Name, nil, del...)
			})
		}
	}
}

// withoutSelector has it lose its host while its selector cannot be read; the node can be the host again then.
func (s *behindService) withoutSelector() {
	s.Helper()
	host := s.c.nodes[0].Name
	s.patch(`{"spec":{"nodeSelector":{"matchLabels":{"my color":"x"}}}}`)
	s.untilSays("Assigned", metav1.ConditionTrue, "Assigned", "until then "+host+" stays the host")
	asService(s)
	s.c.cordon(s.T, host, `""`)
	s.Cleanup(func() { s.c.cordon(s.T, host, "null") })
	s.until("Assigned", metav1.ConditionFalse, "InvalidSelector")
	s.c.cordon(s.T, host, "null")
}

// TestEgressServiceMisfits: what cannot be served is a condition that names it and an Event, pods leave as documented,
// and it heals when what it names ends.
func TestEgressServiceMisfits(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	s := newBehindServiceOf(t, misfitNumber, v1.EgressServiceSpec{NodeSelector: on(c.nodes[0])}, pod{labels: web})
	s.readyOn(c.nodes[0].Name)
	asService(&s)
	for _, m := range misfits() {
		ok := t.Run(m.name, func(t *testing.T) {
			s, n := s, *s.n
			n.t = t
			s.T, s.n, s.b.n = t, &n, &n
			m.begins(&s)
			if m.reason == "" {
				s.untilSays("Assigned", metav1.ConditionTrue, "Assigned", m.says)
			} else {
				s.untilSays("Ready", metav1.ConditionFalse, m.reason, m.says)
				s.tells(m.reason)
			}
			m.leaves(&s)
			m.ends(&s)
			s.isReadyOn(c.nodes[0].Name)
			within(t, soon, func() error { return s.labelled(c.nodes[0].Name) })
			asService(&s)
			c.from(t, c.hosts[0]).to(s.b.balancer).answeredBy(behindPods...)
		})
		if !ok {
			return // the next one begins with what this one has left
		}
	}
}

// untilSays waits as until does, and that the message has a text.
func (s egressService) untilSays(condition string, status metav1.ConditionStatus, reason, text string) {
	s.Helper()
	within(s.T, soon, func() error {
		if said := s.until(condition, status, reason); !strings.Contains(said, text) {
			return fmt.Errorf("condition %s says %q, and nothing of %q", condition, said, text)
		}
		return nil
	})
}

// tells waits for a Warning about it.
func (s egressService) tells(reason string) {
	s.Helper()
	o, err := s.get()
	must(s.T, err)
	within(s.T, soon, func() error {
		told := s.c.eventsOf(o.UID)
		if !strings.Contains(strings.Join(told, "\n"), corev1.EventTypeWarning+" "+reason+" ") {
			return fmt.Errorf("EgressService %s: no Event %s among %q", s.name, reason, told)
		}
		return nil
	})
}

// TestEgressServiceFirstPod: of a Service that has no endpoints, the first pod has its source from its first packet on,
// and so has the first one after the last has gone.
func TestEgressServiceFirstPod(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	s := behindService{egressService: egressService{t, c, n.name, "one"}, n: n}
	s.b = n.balances("one", 68, func(o *corev1.ServiceSpec) { o.Selector = late })
	s.creates(v1.EgressServiceSpec{NodeSelector: on(c.nodes[1])})
	within(t, soon, func() error { return s.labelled(c.nodes[1].Name) })
	s.untilSays("Ready", metav1.ConditionFalse, "NoEndpoints", "has no endpoints")
	seen := c.capture(t)
	for _, p := range []string{"first", "second"} {
		s.n.runs(pod{name: p, node: c.nodes[0], labels: late, sends: true})
		seen.flowing(c, s.n, []string{p}, time.Now(), soon)
		s.readyOn(c.nodes[1].Name)
		s.n.from(p).to(c.outside(0)).arrivesAs(s.b.balancer.ips...)
		must(t, c.api.CoreV1().Pods(n.name).Delete(t.Context(), p, metav1.DeleteOptions{}))
		s.untilSays("Ready", metav1.ConditionFalse, "NoEndpoints", "has no endpoints")
		within(t, soon, func() error { return s.labelled(c.nodes[1].Name) })
	}
	seen.onlyFrom(s.n, s.b.balancer.ips)
}
