package simulate

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	cniv1 "github.com/egret-net/egret/api/cni/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// definitions is the plural of NetworkAttachmentDefinitions.
const definitions = "network-attachment-definitions"

// setNetwork creates a namespace whose pods have a primary network of its name. The network has a number and the very
// subnets of the default network, so that pods of both have the same addresses. EgressIPs select the namespace.
func (s *Sim) setNetwork(name string, number int) {
	if s.networks[name] != 0 {
		return
	}
	s.networks[name] = number
	s.createNamespace(name, v1.LabelPrimaryNetwork)
	o := &cniv1.NetworkAttachmentDefinition{}
	o.Namespace, o.Name = name, "network"
	o.Annotations = map[string]string{v1.AnnotationNetworkName: name, v1.AnnotationNetworkID: strconv.Itoa(number)}
	o.Spec.Config = kube.FormatNetworkConfig(networks.Config{Name: name, Subnets: s.config.ClusterSubnets},
		definitionOf(name))
	s.api.put(definitions, o)
}

// createNamespace creates a namespace that EgressIPs select, with some further labels.
func (s *Sim) createNamespace(name string, labels ...string) {
	o := &corev1.Namespace{}
	o.Name, o.Labels = name, map[string]string{"tenant": "x"}
	for _, label := range labels {
		o.Labels[label] = ""
	}
	s.api.put("namespaces", o)
}

// definitionOf returns the key of a network's definition.
func definitionOf(network string) string { return network + "/network" }

// podKey returns the key of the pod that stories name so. A name without a namespace is that of a pod of the default
// network.
func podKey(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return namespace + "/" + name
}

// namespace is the pod's.
func (p *pod) namespace() string {
	ns, _, _ := strings.Cut(p.key, "/")
	return ns
}

// primary returns the pod's primary network.
func (p *pod) primary() plan.Names {
	if number := p.s.networks[p.namespace()]; number != 0 {
		return plan.Names{Network: p.namespace(), ID: number}
	}
	return plan.DefaultNames()
}

// isInOwnNetwork reports whether the pod's primary network is not the default one.
func (p *pod) isInOwnNetwork() bool { return p.primary().ID != 0 }

// interfacesIn returns the interface that the pod has in its own network. It returns none for the default network. It
// reports whether the pod's node can give addresses of the network.
func (p *pod) interfacesIn(network plan.Names) (further []world.Interface, ready bool) {
	if network.ID == 0 {
		return nil, true
	}
	subnets := p.on.subnetsIn(network.Network)
	if len(subnets) < len(p.on.subnetsIn(ref.DefaultNetwork)) || !p.on.serves(p.namespace()) {
		return nil, false
	}
	if p.inOwn < 0 {
		p.inOwn = p.s.freeIndex(p.on, func(o *pod) int {
			if o.namespace() != p.namespace() {
				return -1
			}
			return o.inOwn
		})
	}
	ips := addressesAt(subnets, p.inOwn)
	return []world.Interface{{Network: network.Network, MAC: world.MAC(ips[0]), IPs: ips}}, true
}

// serves reports whether the node's agent knows the namespace's own network.
func (m *machine) serves(namespace string) (is bool) {
	m.agent.Ask(func(w *world.World) { is = w.PrimaryNetwork(namespace) == namespace })
	return is
}

// subnetsIn returns the node's subnets of a network.
func (m *machine) subnetsIn(network string) (out []netip.Prefix) {
	m.agent.Ask(func(w *world.World) {
		if n := w.Node(m.name); n != nil {
			out = n.In(network).Subnets
		}
	})
	return out
}

func addressesAt(subnets []netip.Prefix, index int) (out []netip.Addr) {
	for _, subnet := range subnets {
		out = append(out, world.Nth(subnet, 10+index))
	}
	return out
}

// networksAnnotation is what a node writes of a pod's interfaces.
func networksAnnotation(at *world.Attachment) map[string]string {
	if len(at.Further) == 0 {
		return kube.PodAnnotations(prefixes(at.IPs), at.MAC, nil)
	}
	all := cniserver.PodNetworks{ref.DefaultNetwork: {IPs: texts(at.IPs), MAC: at.MAC, Role: "infrastructure-locked"}}
	for _, i := range at.Further {
		all[definitionOf(i.Network)] = cniserver.PodNetwork{IPs: texts(i.IPs), MAC: i.MAC, Role: "primary",
			Network: i.Network}
	}
	text, err := json.Marshal(all)
	must(err)
	return map[string]string{v1.AnnotationPodNetworks: string(text)}
}

func texts(ips []netip.Addr) (out []string) {
	for _, p := range prefixes(ips) {
		out = append(out, p.String())
	}
	return out
}

// mayBeUnserved reports whether an EgressIP has addresses on links and may select the pod, which has its own network:
// what the pod sends is dropped then, and its node's EgressNode says so.
func (s *Sim) mayBeUnserved(p *pod) bool {
	if !p.isInOwnNetwork() {
		return false
	}
	o := get[*corev1.Pod](s.api, "pods", p.key)
	for name := range s.api.objects["egressips"] {
		e := s.api.egressIP(name)
		if o != nil && e.Spec.PodSelector.MatchLabels["group"] == o.Labels["group"] &&
			slices.ContainsFunc(e.Spec.EgressIPs, func(ip string) bool { return isOnLinks(netip.MustParseAddr(ip)) }) {
			return true
		}
	}
	return false
}

// hasLostSubnets reports whether the subnets of the pod's Node are without its address. The Node was registered again,
// and another one got the former subnets meanwhile: what the pod sends is dropped until it is deleted.
func (s *Sim) hasLostSubnets(p *pod) bool {
	var all map[string][]netip.Prefix
	text := get[*corev1.Node](s.api, "nodes", p.on.name).Annotations[v1.AnnotationNodeSubnets]
	must(json.Unmarshal([]byte(text), &all))
	network := p.primary().Network
	has := slices.ContainsFunc(all[network], func(n netip.Prefix) bool { return n.Contains(p.at.In(network)[0]) })
	return len(all[network]) > 0 && !has
}

// isOnLinks reports whether an EgressIP's address is on the nodes' links.
func isOnLinks(ip netip.Addr) bool {
	return slices.ContainsFunc(prefixes(compiletest.SecondaryAddr(0)), func(p netip.Prefix) bool {
		return p.Masked().Contains(ip)
	})
}
