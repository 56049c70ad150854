package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	cniv1 "github.com/egret-net/egret/api/cni/v1"
	v1 "github.com/egret-net/egret/api/v1"
)

// TestUserNetworks: a namespace that was made for a network of its own has none, and its pod starts when somebody asks
// for one, not before; a network of several namespaces has one number; both are gone when they are deleted, and leave
// nothing.
func TestUserNetworks(t *testing.T) {
	c := theCluster(t)
	c.inOneMode(t)
	n := c.namespace(t, map[string]string{v1.LabelPrimaryNetwork: "", "tenant": "blue"})
	n.creates(pod{name: "p", node: c.nodes[1]})
	n.tells("p", "and no network yet: make a UserDefinedNetwork")

	spec := v1.Layer3Config{Role: v1.RolePrimary, Subnets: []v1.Layer3Subnet{{CIDR: "10.128.0.0/16", HostSubnet: 24}}}
	own := &v1.UserDefinedNetwork{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: "net"},
		Spec: v1.UserDefinedNetworkSpec{Topology: v1.TopologyLayer3, Layer3: &spec}}
	must(t, c.kube.EgressIP.Post().Namespace(n.name).Resource("userdefinednetworks").Body(own).
		Do(t.Context()).Error())
	n.hasNetwork("userdefinednetworks", n.name, "net", n.name+"_net")
	within(t, podsTimeout, func() error { return n.learn("p") })

	shared := &v1.ClusterUserDefinedNetwork{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	shared.Spec.NamespaceSelector.MatchLabels = map[string]string{"tenant": "blue"}
	shared.Spec.Network = v1.NetworkSpec{Topology: v1.TopologyLayer3, Layer3: &spec}
	must(t, c.kube.EgressIP.Post().Resource("clusteruserdefinednetworks").Body(shared).Do(t.Context()).Error())
	t.Cleanup(func() {
		client := c.kube.EgressIP
		_ = client.Delete().Resource("clusteruserdefinednetworks").Name(n.name).Do(context.Background()).Error()
	})
	within(t, soon, func() error {
		return c.networkCondition(t, "clusteruserdefinednetworks", "", n.name, "primary network already exists")
	})
	if have := c.kubectl(t, "get", "udn", "-n", n.name); !strings.Contains(have, "True") {
		t.Errorf("kubectl get udn:\n%s", have)
	}
	n.deletes("p")
	n.losesNetwork("userdefinednetworks", n.name, "net")
	n.hasNetwork("clusteruserdefinednetworks", "", n.name, "cluster_udn_"+n.name)
	n.losesNetwork("clusteruserdefinednetworks", "", n.name)
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// TestUserNetworksPage applies the manifests of docs/user-networks.md. A pod of that network leaves with that egress
// IP.
func TestUserNetworksPage(t *testing.T) {
	c := theCluster(t)
	c.inOneMode(t)
	page, err := os.ReadFile("../../docs/user-networks.md")
	must(t, err)
	c.labelEgress(t, c.nodes[2])
	file := filepath.Join(t.TempDir(), "objects.yaml")
	for _, block := range yamlBlock.FindAllSubmatch(page, -1) {
		must(t, os.WriteFile(file, block[1], 0o600))
		c.kubectl(t, "apply", "-f", file)
		t.Cleanup(func() { _, _ = c.tryKubectl(context.Background(), "delete", "--ignore-not-found", "-f", file) })
	}
	shop := &namespace{t: t, c: c, name: "shop", ips: map[string][]netip.Addr{}, at: map[string]string{}}
	n := &tenant{shop, "blue", map[string][]netip.Addr{}}
	n.hasNetwork("clusteruserdefinednetworks", "", n.network, "cluster_udn_"+n.network)
	n.starts(pod{name: "web", node: c.nodes[0]})
	n.joins("web")
	if ips := n.own["web"]; len(ips) != 1 || !netip.MustParsePrefix("10.128.0.0/16").Contains(ips[0]) {
		t.Errorf("the pod has in its network %v", ips)
	}
	egressIP{t, c, "shop"}.readyOn(c.nodes[2])
	outside := c.outside(0)
	outside.ips = ofFamily(outside.ips, n.own["web"][0])
	n.from("web").to(outside).soonArrivesAs(netip.MustParseAddr("172.18.0.77"))
	n.deletes("web")
	n.losesNetwork("clusteruserdefinednetworks", "", n.network)
}

// tells waits for an Event of a pod.
func (n *namespace) tells(pod, text string) {
	n.t.Helper()
	within(n.t, podsTimeout, func() error {
		list, err := n.c.api.CoreV1().Events(n.name).List(n.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.InvolvedObject.Name == pod && strings.Contains(e.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("no Event of pod %s says %q", pod, text)
	})
	o, err := n.c.api.CoreV1().Pods(n.name).Get(n.t.Context(), pod, metav1.GetOptions{})
	must(n.t, err)
	if o.Status.Phase != corev1.PodPending {
		n.t.Errorf("pod %s is %s", pod, o.Status.Phase)
	}
}

// networkCondition says what a request lacks to be created ("True"), or to say a text.
func (c *cluster) networkCondition(t *testing.T, plural, namespace, name, want string) error {
	t.Helper()
	var status v1.UserDefinedNetworkStatus
	r := c.kube.EgressIP.Get().NamespaceIfScoped(namespace, namespace != "").Resource(plural).Name(name).Do(t.Context())
	if namespace != "" {
		o := &v1.UserDefinedNetwork{}
		must(t, r.Into(o))
		status = o.Status
	} else {
		o := &v1.ClusterUserDefinedNetwork{}
		must(t, r.Into(o))
		status = o.Status
	}
	condition := meta.FindStatusCondition(status.Conditions, v1.ConditionNetworkCreated)
	if condition == nil || string(condition.Status) != want && !strings.Contains(condition.Message, want) {
		return fmt.Errorf("%s %s has condition %+v, want %s", plural, name, condition, want)
	}
	return nil
}

// hasNetwork waits until a request is created, and the namespace's definition of its name has its network.
func (n *namespace) hasNetwork(plural, namespace, name, network string) {
	n.t.Helper()
	within(n.t, soon, func() error { return n.c.networkCondition(n.t, plural, namespace, name, "True") })
	o := &cniv1.NetworkAttachmentDefinition{}
	must(n.t, n.definition(name).Do(n.t.Context()).Into(o))
	if o.Annotations[v1.AnnotationNetworkName] != network || o.Annotations[v1.AnnotationNetworkID] == "" {
		n.t.Errorf("definition %s: %v", name, o.Annotations)
	}
}

func (n *namespace) definition(name string) *rest.Request {
	return n.c.kube.Definitions.Get().Namespace(n.name).Resource("network-attachment-definitions").Name(name)
}

// losesNetwork deletes a request, and returns when it and its definition are gone.
func (n *namespace) losesNetwork(plural, namespace, name string) {
	n.t.Helper()
	must(n.t, n.c.kube.EgressIP.Delete().NamespaceIfScoped(namespace, namespace != "").Resource(plural).Name(name).
		Do(n.t.Context()).Error())
	n.awaitNoNetwork(plural, namespace, name)
}

// awaitNoNetwork returns when a request that was deleted and its definition are gone.
func (n *namespace) awaitNoNetwork(plural, namespace, name string) {
	n.t.Helper()
	client := n.c.kube.EgressIP
	within(n.t, soon, func() error {
		request := client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(plural).Name(name)
		for _, err := range []error{request.Do(n.t.Context()).Error(), n.definition(name).Do(n.t.Context()).Error()} {
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s %s is still there: %w", plural, name, err)
			}
		}
		return nil
	})
}
