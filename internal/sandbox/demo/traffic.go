package demo

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

// probeAll connects from every pod to its targets, several pods at a time, and draws the table as it fills.
func (d *demo) probeAll(ctx context.Context, p pods, egressIPs []netip.Addr) ([]row, error) {
	type job struct {
		pod     corev1.Pod
		targets []target
		first   int // of its rows
	}
	var jobs []job
	var rows []row
	for _, pod := range slices.Concat(p.served, p.unserved) {
		j := job{pod: pod, targets: d.targetsOf(pod, p, egressIPs), first: len(rows)}
		for _, t := range j.targets {
			r := t.rowFor(pod)
			r.awaiting = true
			rows = append(rows, r)
		}
		jobs = append(jobs, j)
	}
	var mu sync.Mutex
	table := live{screen: d.screen}
	table.drawText(d.screen.rowsTable(rows), false)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for _, j := range jobs {
		g.Go(func() error {
			filled := slices.Clone(rows[j.first : j.first+len(j.targets)])
			if err := d.probeFrom(ctx, j.pod, j.targets, filled); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			copy(rows[j.first:], filled)
			table.drawText(d.screen.rowsTable(rows), false)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	table.drawText(d.screen.rowsTable(rows), true)
	return rows, nil
}

// targetsOf are where a pod connects to: the hosts outside; a served pod also to a pod and to the nodes, where it must
// be seen as without an EgressIP.
func (d *demo) targetsOf(p corev1.Pod, all pods, egressIPs []netip.Addr) []target {
	served := slices.ContainsFunc(all.served, func(s corev1.Pod) bool { return s.UID == p.UID })
	node := memberByName(d.cluster.Nodes(), p.Spec.NodeName)
	var targets []target
	for _, h := range d.cluster.ExternalHosts() {
		for _, ip := range h.IPs {
			want := ofFamily(node.IPs, ip)
			if served {
				want = ofFamily(egressIPs, ip)
			}
			targets = append(targets, target{h.Name, ip, connections, want})
		}
	}
	if !served {
		return targets
	}
	return append(targets, insideTargets(p, all.served, node, nextNode(d.cluster.Nodes(), node.Name))...)
}

// insideTargets are the pod of the same kind on another node, that node, and the pod's own node.
func insideTargets(p corev1.Pod, served []corev1.Pod, own, other sandbox.Member) []target {
	var targets []target
	for _, peer := range served {
		if peer.Spec.NodeName != other.Name {
			continue
		}
		for _, ip := range podIPs(peer) {
			targets = append(targets, target{"pod on " + other.Name, ip, 1, ofFamily(podIPs(p), ip)})
		}
	}
	for _, ip := range other.IPs {
		targets = append(targets, target{"node " + other.Name, ip, 1, ofFamily(own.IPs, ip)})
	}
	for _, ip := range own.IPs {
		targets = append(targets, target{"own node", ip, 1, ofFamily(podIPs(p), ip)})
	}
	return targets
}

func podIPs(p corev1.Pod) []netip.Addr {
	var ips []netip.Addr
	for _, i := range p.Status.PodIPs {
		if ip, err := netip.ParseAddr(i.IP); err == nil {
			ips = append(ips, ip)
		}
	}
	return ips
}

func memberByName(all []sandbox.Member, name string) sandbox.Member {
	i := slices.IndexFunc(all, func(m sandbox.Member) bool { return m.Name == name })
	if i < 0 {
		return sandbox.Member{Name: name}
	}
	return all[i]
}

// nextNode is the node after this one.
func nextNode(nodes []sandbox.Member, name string) sandbox.Member {
	i := slices.IndexFunc(nodes, func(m sandbox.Member) bool { return m.Name == name })
	return nodes[(i+1)%len(nodes)]
}
