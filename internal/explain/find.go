package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// AskAll returns the answers, as text, for the packet of each pod that has an address.
func AskAll(kinds feature.Kinds, w *world.World, from netip.Addr, p trace.Packet) (string, error) {
	keys, err := podsAt(w, from)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, key := range keys {
		text := ""
		if a, err := Ask(kinds, w, key, p); err != nil {
			text = err.Error() + "\n"
		} else {
			text = a.Text()
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n"), nil
}

// podsAt returns the keys of the pods that have an address in any network, by name: pods of several networks may have
// the same one.
func podsAt(w *world.World, ip netip.Addr) ([]string, error) {
	var keys []string
	for p := range w.EachPod() {
		if !p.Completed && slices.ContainsFunc(p.Networks(), func(network string) bool {
			return slices.Contains(w.PodIPs(p, network), ip)
		}) {
			keys = append(keys, p.Key())
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("no pod has address %s in any network: kubectl get pods -A -o yaml has those of the "+
			"default network in status.podIPs, and all in annotation k8s.ovn.org/pod-networks", ip)
	}
	slices.Sort(keys)
	return keys, nil
}
