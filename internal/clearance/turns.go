package clearance

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Watches of two kinds are not ordered: a node may know the last change of one object, and not an earlier one of
// another kind. Then it may have a pod be an object's that never had a claim to it: an EgressIP that comes, say, for
// labels that the pod had before, or that a former pod with its address had. The pod's own claims go on meanwhile. So
// each change that may give packets to an object, its turn, has nodes asked whether they know the earlier ones of other
// kinds.

// noteTurns notes to whose packets objects may have claims, by their turns of this step, for nodes that do not know
// earlier changes.
func (m *Machine) noteTurns(changed map[world.PodAddr]struct{}) {
	for _, t := range m.turns {
		nodes, namespace := m.nodesOf(t), namespaceOf(t)
		if nodes != nil && !slices.ContainsFunc(nodes, func(n string) bool { return m.isLate(n, t.Kind) }) {
			continue
		}
		for key, p := range m.pods {
			if of, _, _ := strings.Cut(key, "/"); p.isClaimed() && (namespace == "" || namespace == of) {
				m.noteTurn(t, nodes, key, changed)
			}
		}
	}
	m.turns = m.turns[:0]
}

// nodesOf are the other nodes at which an object may get packets by a turn, nil if these may be any.
func (m *Machine) nodesOf(t world.Entry) []string {
	if t.Kind != world.KindEgressIP && t.Kind != world.KindEgressService {
		return nil
	}
	nodes := []string{}
	for _, f := range m.w.Config.Families() {
		nodes = append(nodes, namedNodes(&m.w.View, ref.OfKey(t.Key), f)...)
	}
	return nodes
}

// isLate says whether a node may not know the last change of a kind other than one.
func (m *Machine) isLate(node string, but world.Kind) bool {
	n := m.nodes[node]
	if n == nil {
		return false
	}
	for kind, at := range m.latest {
		if kind != but && at > n.heard {
			return true
		}
	}
	return false
}

// noteTurn does so for one pod.
func (m *Machine) noteTurn(t world.Entry, nodes []string, key string, changed map[world.PodAddr]struct{}) {
	f := former{to: destinations.Everything(), at: nodes, everywhere: nodes == nil}
	if !f.everywhere || t.Kind == world.KindService {
		f.by = []world.Claimant{m.w.ClaimantOf(ref.OfKey(t.Key))}
	}
	if t.Kind == world.KindEgressIP {
		mayNot := func(node string) bool { return !m.maySelect(t.Key, node, key) }
		f.at = slices.DeleteFunc(slices.Clone(nodes), mayNot)
	}
	p := m.pods[key]
	f.end = max(p.changed, latestBut(m.altered, t.Kind, key))
	for _, at := range p.addrs {
		if t.Kind != world.KindEgressServicesAt || strings.HasSuffix(t.Key, "/"+at.IP.String()) {
			m.noteEnd(at, f)
			changed[at] = struct{}{}
		}
	}
}

// maySelect says whether an EgressIP may select a pod, as a node knows both the pod and its namespace.
func (m *Machine) maySelect(egressIP, node, key string) bool {
	e, n, p := m.w.EgressIP(egressIP), m.nodes[node], m.w.Pod(key)
	if e == nil || n == nil || p == nil {
		return false
	}
	inNamespace := m.selected[selection{world.KindNamespace, p.Namespace}] > n.heard
	if is := m.w.Namespace(p.Namespace); is != nil {
		inNamespace = inNamespace || e.Namespaces.Matches(labels.Set(is.Labels))
	}
	return inNamespace && (m.pods[key].changed > n.heard || e.Pods.Matches(labels.Set(p.Labels)))
}

func (p *pod) isClaimed() bool { return len(p.claims[world.V4])+len(p.claims[world.V6]) > 0 }
