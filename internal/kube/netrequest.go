package kube

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/networks"
)

// UserNetwork is a UserDefinedNetwork as the world has it.
func UserNetwork(o *v1.UserDefinedNetwork) *networks.Request {
	r := newNetworkRequest(&o.ObjectMeta, &o.Status)
	r.Config.Name = o.Namespace + "_" + o.Name
	readNetworkSpec(r, o.Spec.Topology, o.Spec.Layer3)
	return r
}

// ClusterNetwork is a ClusterUserDefinedNetwork as the world has it.
func ClusterNetwork(o *v1.ClusterUserDefinedNetwork) *networks.Request {
	r := newNetworkRequest(&o.ObjectMeta, &o.Status)
	r.Config.Name = networks.ClusterPrefix + o.Name
	readNetworkSpec(r, o.Spec.Network.Topology, o.Spec.Network.Layer3)
	if t := o.Spec.Network.Transport; t != "" && t != v1.TransportGeneve {
		r.Unserved = fmt.Sprintf("transport %s is not served: only Geneve is", plainText(string(t)))
	}
	selector, err := metav1.LabelSelectorAsSelector(&o.Spec.NamespaceSelector)
	if r.Selector = selector; err != nil {
		r.Selector, r.Problem = labels.Nothing(), "spec.namespaceSelector: "+plainText(err.Error())
	}
	return r
}

func newNetworkRequest(m *metav1.ObjectMeta, s *v1.UserDefinedNetworkStatus) *networks.Request {
	return &networks.Request{
		Namespace: m.Namespace, Name: m.Name, UID: string(m.UID), Version: m.ResourceVersion,
		Created: m.CreationTimestamp.Time, Generation: m.Generation, Deleting: m.DeletionTimestamp != nil,
		Protected: isProtected(m), Finalizers: othersFinalizers(m), Conditions: convertConditions(s.Conditions),
	}
}

// readNetworkSpec reads what is served, which is a primary network of topology Layer3.
func readNetworkSpec(r *networks.Request, topology v1.NetworkTopology, c *v1.Layer3Config) {
	switch {
	case topology != v1.TopologyLayer3:
		r.Unserved = fmt.Sprintf("topology %s is not served: only Layer3 is", plainText(string(topology)))
		return
	case c == nil:
		r.Problem = "spec has no layer3"
		return
	case c.Role != v1.RolePrimary:
		r.Unserved = fmt.Sprintf("role %s is not served: only Primary is", plainText(string(c.Role)))
	}
	r.Config.MTU = int(c.MTU)
	for _, s := range c.Subnets {
		subnet, err := parseNetworkSubnet(string(s.CIDR), int(s.HostSubnet))
		if err != nil {
			r.Problem = "spec.layer3.subnets: " + err.Error()
			return
		}
		r.Config.Subnets = append(r.Config.Subnets, subnet)
	}
	var join []string
	for _, s := range c.JoinSubnets {
		join = append(join, string(s))
	}
	var err error
	if r.Config.Join, err = parseJoin(strings.Join(join, ",")); err != nil {
		r.Problem = "spec.layer3.joinSubnets: " + err.Error()
	}
}

// isProtected says whether an object has the finalizer of networks.
func isProtected(m metav1.Object) bool {
	return slices.Contains(m.GetFinalizers(), v1.FinalizerNetwork)
}

// othersFinalizers returns an object's finalizers without that of networks.
func othersFinalizers(m metav1.Object) []string {
	return slices.DeleteFunc(slices.Clone(m.GetFinalizers()), func(f string) bool { return f == v1.FinalizerNetwork })
}

// allFinalizers are others' finalizers, and that of networks.
func allFinalizers(others []string, protected bool) []string {
	if protected {
		return append(slices.Clip(others), v1.FinalizerNetwork)
	}
	return slices.Concat([]string{}, others) // never null
}
