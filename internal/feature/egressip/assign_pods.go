package egressip

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// podAddresses are the addresses of all pods, with whose they are: there are more pods than a decision can look at.
type podAddresses struct {
	pods  map[netip.Addr][]string
	asked func(netip.Addr) bool // whether an EgressIP asks for an address
	moved bool                  // one that is asked for has become a pod's, or is one's no longer
}

type podAddress struct {
	ip  netip.Addr
	pod string
}

func newPodAddresses(pods *handover.Pods, asked func(netip.Addr) bool) *podAddresses {
	m := &podAddresses{pods: map[netip.Addr][]string{}, asked: asked}
	handover.NewPodList(pods, addressesOf, m.countAddresses)
	return m
}

// addressesOf are a pod's, each once, sorted.
func addressesOf(w *world.View, p *world.Pod) []podAddress {
	if p.HostNetwork || p.Completed {
		return nil
	}
	var out []podAddress
	for _, ip := range w.PodIPs(p, ref.DefaultNetwork) {
		out = append(out, podAddress{ip, p.Key()})
	}
	slices.SortFunc(out, func(a, b podAddress) int { return a.ip.Compare(b.ip) })
	return slices.Compact(out)
}

func (m *podAddresses) countAddresses(list []podAddress, n int) {
	for _, a := range list {
		m.moved = m.moved || m.asked(a.ip)
		if n > 0 {
			m.pods[a.ip] = append(m.pods[a.ip], a.pod)
			continue
		}
		left := slices.DeleteFunc(m.pods[a.ip], func(pod string) bool { return pod == a.pod })
		if m.pods[a.ip] = left; len(left) == 0 {
			delete(m.pods, a.ip)
		}
	}
}

// firstPodAt is the first pod by name that has an address; "" if none has.
func (m *podAddresses) firstPodAt(ip netip.Addr) string {
	if len(m.pods[ip]) == 0 {
		return ""
	}
	return slices.Min(m.pods[ip])
}
