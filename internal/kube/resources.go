package kube

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	cniv1 "github.com/egret-net/egret/api/cni/v1"
	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// One function a kind. All programs follow the kinds of all features (feature.Kind), and the controller writes those
// that say how.

// Followed returns the kinds that controllers follow: those of features, pods, and all that nodes report.
func Followed(features ...Kind) []Kind { return append(features, Pods(), EgressNodes()) }

// Explained returns the kinds by which packets are explained: those of features without the ones that controllers alone
// follow, pods, and all that nodes report.
func Explained(features ...Kind) []Kind {
	return append(slices.DeleteFunc(features, Kind.isControllersOnly), Pods(), EgressNodes())
}

// FollowedBy returns the kinds that a node's agent follows: those of features without the ones that controllers alone
// follow, pods once they have a node, and of what nodes report its own words and what concerns other nodes.
func FollowedBy(node string, features ...Kind) []Kind {
	return append(slices.DeleteFunc(features, Kind.isControllersOnly), boundPods(), ownEgressNode(node),
		othersEgressNodes(node))
}

func ofCore(c *Clients) rest.Interface { return c.Core }

func ofEgressIP(c *Clients) rest.Interface { return c.EgressIP }

// Nodes are followed by all; the controller writes what it allocates.
func Nodes() Kind {
	return Resource[*corev1.Node, world.Node]{
		Plural: "nodes", Claims: true, Restless: true, Client: ofCore, Example: &corev1.Node{}, Convert: Node,
		Set: (*world.World).SetNode, Del: (*world.World).DelNode,
		Written: Written{Kind: world.KindNode, APIVersion: "v1", Object: "Node",
			Write: Writing(world.KindNode, writeAllocation)},
		intern: func(n *world.Node, i *interner) { n.Labels = i.internLabels(n.Labels) },
	}
}

// Namespaces are followed for their labels.
func Namespaces() Kind {
	return Resource[*corev1.Namespace, world.Namespace]{
		Plural: "namespaces", Claims: true, Client: ofCore, Example: &corev1.Namespace{}, Convert: Namespace,
		Set: (*world.World).SetNamespace, Del: (*world.World).DelNamespace,
	}
}

// Pods are followed for their addresses and labels. The controller posts Events about them, and writes nothing of them.
func Pods() Kind { return podsWhere(nil) }

// boundPods leaves out pods that no node runs yet: they have no address, and each event of a pod goes to all nodes.
func boundPods() Kind { return podsWhere(fields.OneTermNotEqualSelector("spec.nodeName", "")) }

func podsWhere(served fields.Selector) Kind {
	return Resource[*corev1.Pod, world.Pod]{
		Plural: "pods", Claims: true, Client: ofCore, Example: &corev1.Pod{}, Served: served, Convert: Pod,
		Set: (*world.World).SetPod, Del: (*world.World).DelPod,
		Written: Written{Kind: world.KindPod, APIVersion: "v1", Object: "Pod",
			Write: func(*world.World, string) *Write { return nil }},
		intern: func(p *world.Pod, i *interner) { p.Labels = i.internLabels(p.Labels) },
	}
}

// EgressIPs are followed by all; the controller writes their status.
func EgressIPs() Kind {
	return Resource[*v1.EgressIP, world.EgressIP]{
		Plural: "egressips", Claims: true, Client: ofEgressIP, Example: &v1.EgressIP{}, Convert: EgressIP,
		Set: (*world.World).SetEgressIP, Del: (*world.World).DelEgressIP,
		Written: Written{Kind: world.KindEgressIP, APIVersion: v1.GroupVersion.String(), Object: "EgressIP",
			Write: Writing(world.KindEgressIP, writeEgressIP)},
	}
}

// EgressIPTraffics are followed by all, for the networks that EgressIPs select.
func EgressIPTraffics() Kind {
	return Resource[*v1.EgressIPTraffic, world.Traffic]{
		Plural: "egressiptraffics", Claims: true, Client: ofEgressIP, Example: &v1.EgressIPTraffic{}, Convert: Traffic,
		Set: (*world.World).SetTraffic, Del: (*world.World).DelTraffic,
		intern: func(t *world.Traffic, i *interner) { t.Labels = i.internLabels(t.Labels) },
	}
}

// EgressServices are followed by all; the controller writes their status.
func EgressServices() Kind {
	return Resource[*v1.EgressService, world.EgressService]{
		Plural: "egressservices", Claims: true, Client: ofEgressIP, Example: &v1.EgressService{},
		Convert: EgressService,
		Set:     (*world.World).SetEgressService, Del: (*world.World).DelEgressService,
		Written: Written{Kind: world.KindEgressService, APIVersion: v1.GroupVersion.String(), Object: "EgressService",
			Write: Writing(world.KindEgressService, writeEgressService)},
	}
}

// EgressNodes are what nodes report. Controllers follow all of them.
func EgressNodes() Kind { return egressNodes(nil, nil) }

func ownEgressNode(node string) Kind {
	return egressNodes(fields.OneTermEqualSelector(fieldName, node), nil)
}

// othersEgressNodes leaves out the reports that only controllers read: else the reports of all nodes would go to all
// nodes.
func othersEgressNodes(node string) Kind {
	return egressNodes(fields.OneTermNotEqualSelector(fieldName, node),
		fields.OneTermNotEqualSelector("status.formatVersion", strconv.Itoa(egretv1.FormatForControllers)))
}

func egressNodes(all, served fields.Selector) Kind {
	return Resource[*egretv1.EgressNode, world.Holding]{
		Plural: "egressnodes", Client: func(c *Clients) rest.Interface { return c.Egret },
		Example: &egretv1.EgressNode{}, Fields: all, Served: served, Convert: Holding,
		Set: (*world.World).SetHolding, Del: (*world.World).DelHolding,
	}
}

// Services are followed by all, joined with EndpointSlices where these are followed; the controller writes one
// condition of them.
func Services() Kind {
	return Resource[*corev1.Service, servicePart]{
		Plural: "services", Claims: true, Client: ofCore, Example: &corev1.Service{}, Convert: servicePartOf,
		Written: Written{Kind: world.KindService, APIVersion: "v1", Object: "Service",
			Write: Writing(world.KindService, writeService)},
		join: func(j *join) (func(*world.World, *servicePart), func(*world.World, string)) {
			return j.setService, j.delService
		},
	}
}

// EndpointSlices are the endpoints of Services. Headless Services have none that a load balancer would lead to.
func EndpointSlices() Kind {
	return Resource[*discoveryv1.EndpointSlice, slicePart]{
		Plural: "endpointslices", Claims: true, Client: func(c *Clients) rest.Interface { return c.Discovery },
		Example: &discoveryv1.EndpointSlice{}, Selector: "!" + labelHeadless, Convert: slicePartOf,
		intern: func(p *slicePart, i *interner) { p.internStrings(i.internString) },
		join: func(j *join) (func(*world.World, *slicePart), func(*world.World, string)) {
			return j.setSlice, j.delSlice
		},
	}
}

// UserNetworks are what namespaces ask for as networks; controllers decide what becomes of them.
func UserNetworks() Kind {
	return networkRequests("userdefinednetworks", ref.UserDefinedNetwork, world.KindUserNetwork,
		&v1.UserDefinedNetwork{}, UserNetwork)
}

// ClusterNetworks are the same for several namespaces.
func ClusterNetworks() Kind {
	return networkRequests("clusteruserdefinednetworks", ref.ClusterUserDefinedNetwork, world.KindClusterNetwork,
		&v1.ClusterUserDefinedNetwork{}, ClusterNetwork)
}

func networkRequests[O runtime.Object](plural, object string, k world.Kind, example O,
	convert func(O) *networks.Request) Kind {
	return Resource[O, networks.Request]{
		Plural: plural, Client: ofEgressIP, Example: example, ControllersOnly: true, Convert: convert,
		Set: func(w *world.World, r *networks.Request) { world.Set(w, k, r) },
		Del: func(w *world.World, key string) { world.Del[networks.Request](w, k, key) },
		Written: Written{Kind: k, APIVersion: v1.GroupVersion.String(), Object: object,
			Write: Writing(k, writeNetworkRequest)},
	}
}

// NetworkDefinitions are followed by all: the networks of pods follow from them.
func NetworkDefinitions() Kind {
	const k = world.KindDefinition
	return Resource[*cniv1.NetworkAttachmentDefinition, networks.Definition]{
		Plural: pluralDefinitions, Claims: true, Client: ofDefinition, Example: &cniv1.NetworkAttachmentDefinition{},
		Convert: NetworkDefinition,
		Set:     func(w *world.World, d *networks.Definition) { world.Set(w, k, d) },
		Del:     func(w *world.World, key string) { world.Del[networks.Definition](w, k, key) },
		Written: Written{Kind: k, APIVersion: cniv1.GroupVersion.String(), Object: ref.NetworkAttachmentDefinition,
			Write: Writing(k, writeNetworkDefinition)},
	}
}

const pluralDefinitions = "network-attachment-definitions"

func ofDefinition(c *Clients) rest.Interface { return c.Definitions }
