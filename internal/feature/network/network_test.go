package network_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "github.com/egret-net/egret/api/cni/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

func userNetwork(namespace, name, subnet string) string {
	return fmt.Sprintf("{apiVersion: k8s.ovn.org/v1, kind: UserDefinedNetwork, metadata: {name: \"%s\", namespace: \"%s\"}, spec: "+
		"{topology: Layer3, layer3: {role: Primary, subnets: [{cidr: %s, hostSubnet: 24}]}}}", name, namespace, subnet)
}

func clusterNetwork(name, tenant, subnet string) string {
	return fmt.Sprintf("{apiVersion: k8s.ovn.org/v1, kind: ClusterUserDefinedNetwork, metadata: {name: \"%s\"}, spec: "+
		"{namespaceSelector: {matchLabels: {tenant: %s}}, network: {topology: Layer3, layer3: {role: Primary, subnets: "+
		"[{cidr: %s, hostSubnet: 24}]}}}}", name, tenant, subnet)
}

func definition(namespace, name, network, subnet string) string {
	return fmt.Sprintf(`{apiVersion: k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition, metadata: {name: "%s", `+
		`namespace: "%s"}, spec: {config: '{"type":"ovn-k8s-cni-overlay","name":"%s","netAttachDefName":"%s/%s",`+
		`"topology":"layer3","role":"primary","subnets":"%s"}'}}`, name, namespace, network, namespace, name, subnet)
}

func tenant(name string) map[string]string { return map[string]string{"tenant": name} }

// TestNetworksComeAndGo tells what becomes of objects, step by step.
func TestNetworksComeAndGo(t *testing.T) {
	c := newCluster()
	for i, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"a namespace's own", func() {
			c.namespace("n", true, nil)
			c.create(t, userNetwork("n", "net", "10.128.0.0/16"))
		}, `udn n/net: NetworkAttachmentDefinitionCreated, the network is that of the namespace's pods
definition n/net of n_net 1
network 1 n_net [{10.128.0.0/16 24}] [100.65.0.0/16] in [n]
`},
		{"one for two namespaces, of which one was made without the label", func() {
			c.namespace("a", true, tenant("blue"))
			c.namespace("b", false, tenant("blue"))
			c.create(t, clusterNetwork("blue", "blue", "10.128.0.0/16"))
		}, `udn n/net: NetworkAttachmentDefinitionCreated, the network is that of the namespace's pods
cudn blue: NetworkAttachmentDefinitionSyncError, namespace b was not made with label k8s.ovn.org/primary-user-defined-network: its pods are in the default network. Make a namespace that has it
definition a/blue of cluster_udn_blue 2
definition n/net of n_net 1
network 2 cluster_udn_blue [{10.128.0.0/16 24}] [100.65.0.0/16] in [a]
network 1 n_net [{10.128.0.0/16 24}] [100.65.0.0/16] in [n]
`},
		{"the other namespace is made anew", func() { c.namespace("b", true, tenant("blue")) },
			`udn n/net: NetworkAttachmentDefinitionCreated, the network is that of the namespace's pods
cudn blue: NetworkAttachmentDefinitionCreated, the network is that of pods in namespaces a, b
definition a/blue of cluster_udn_blue 2
definition b/blue of cluster_udn_blue 2
definition n/net of n_net 1
network 2 cluster_udn_blue [{10.128.0.0/16 24}] [100.65.0.0/16] in [a b]
network 1 n_net [{10.128.0.0/16 24}] [100.65.0.0/16] in [n]
`},
		{"a second one for a namespace", func() { c.create(t, userNetwork("a", "mine", "10.130.0.0/16")) },
			`udn a/mine: SyncError, primary network already exists in namespace a: cluster_udn_blue
udn n/net: NetworkAttachmentDefinitionCreated, the network is that of the namespace's pods
cudn blue: NetworkAttachmentDefinitionCreated, the network is that of pods in namespaces a, b
definition a/blue of cluster_udn_blue 2
definition b/blue of cluster_udn_blue 2
definition n/net of n_net 1
network 2 cluster_udn_blue [{10.128.0.0/16 24}] [100.65.0.0/16] in [a b]
network 1 n_net [{10.128.0.0/16 24}] [100.65.0.0/16] in [n]
`},
		{"the first one goes while a pod is in it, and one's namespace is free", func() {
			c.pod("b", "p")
			c.remove(t, world.KindClusterNetwork, "blue")
		}, `udn a/mine: NetworkAttachmentDefinitionCreated, the network is that of the namespace's pods
udn n/net: NetworkAttachmentDefinitionCreated, the network is that of the namespace's pods
cudn blue: NetworkAttachmentDefinitionDeleted, pod b/p is in the network: it is deleted when the last pod is gone, going
definition a/mine of a_mine 3
definition b/blue of cluster_udn_blue 2
definition n/net of n_net 1
network 3 a_mine [{10.130.0.0/16 24}] [100.65.0.0/16] in [a]
network 2 cluster_udn_blue [{10.128.0.0/16 24}] [100.65.0.0/16] in [b]
network 1 n_net [{10.128.0.0/16 24}] [100.65.0.0/16] in [n]
`},
		{"another controller leads, and the pod goes", func() {
			c.lead()
			c.show(func(w *world.World) { w.DelPod("b/p") })
		}, `udn a/mine: NetworkAttachmentDefinitionCreated, the network is that of the namespace's pods
udn n/net: NetworkAttachmentDefinitionCreated, the network is that of the namespace's pods
definition a/mine of a_mine 3
definition n/net of n_net 1
network 3 a_mine [{10.130.0.0/16 24}] [100.65.0.0/16] in [a]
network 1 n_net [{10.128.0.0/16 24}] [100.65.0.0/16] in [n]
`},
		{"somebody deletes a definition, and writes over another", func() {
			c.remove(t, world.KindDefinition, "n/net")
			c.change(t, world.KindDefinition, "a/mine", func(o metav1.Object) { o.SetAnnotations(nil) })
		}, `udn a/mine: NetworkAttachmentDefinitionCreated, the network is that of the namespace's pods
udn n/net: NetworkAttachmentDefinitionCreated, the network is that of the namespace's pods
definition a/mine of a_mine 3
definition n/net of n_net 1
network 3 a_mine [{10.130.0.0/16 24}] [100.65.0.0/16] in [a]
network 1 n_net [{10.128.0.0/16 24}] [100.65.0.0/16] in [n]
`},
		{"all go", func() {
			c.remove(t, world.KindUserNetwork, "n/net")
			c.remove(t, world.KindUserNetwork, "a/mine")
		}, "\n"},
	} {
		step.do()
		c.settle(t)
		if have := c.text(); have != step.want {
			t.Fatalf("%d, %s:\n%s\nwant:\n%s", i, step.what, have, step.want)
		}
	}
}

// TestAdministratorsDefinitions: a definition that an administrator wrote is a network. Definitions of one name that
// agree are one network. None takes a request's name, nor a namespace that has a network.
func TestAdministratorsDefinitions(t *testing.T) {
	c := newCluster()
	for _, ns := range []string{"a", "b", "c", "d"} {
		c.namespace(ns, true, nil)
	}
	c.namespace("plain", false, nil)
	c.create(t, userNetwork("a", "net", "10.128.0.0/16"))
	c.settle(t)
	for _, text := range []string{
		definition("b", "shared", "shared", "10.128.0.0/16/24"),
		definition("c", "shared", "shared", "10.128.0.0/16/24"),
		definition("a", "second", "shared", "10.128.0.0/16/24"),
		definition("d", "stolen", "a_net", "10.128.0.0/16/24"),
		definition("c", "other", "shared", "10.130.0.0/16/24"),
		definition("plain", "shared", "shared", "10.128.0.0/16/24"),
		"{apiVersion: k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition, metadata: {name: v, namespace: a}, spec: " +
			"{config: '{\"type\":\"macvlan\"}'}}",
	} {
		c.create(t, text)
	}
	c.settle(t)
	const want = `udn a/net: NetworkAttachmentDefinitionCreated, the network is that of the namespace's pods
definition a/net of a_net 1
definition a/second of  
definition a/v of  
definition b/shared of shared 2
definition c/other of  
definition c/shared of shared 2
definition d/stolen of  
definition plain/shared of  
network 1 a_net [{10.128.0.0/16 24}] [100.65.0.0/16] in [a]
network 2 shared [{10.128.0.0/16 24}] [100.65.0.0/16] in [b c]
`
	if have := c.text(); have != want {
		t.Errorf("have\n%s\nwant\n%s", have, want)
	}
	const events = `a/second: namespace a has a_net as its primary network: a namespace has one
c/other: namespace c has shared as its primary network: a namespace has one
d/stolen: name a_net is the network's of UserDefinedNetwork a/net: choose another
plain/shared: namespace plain was not made with label k8s.ovn.org/primary-user-defined-network: its pods are in the default network. Make a namespace that has it
`
	if have := strings.Join(c.events, "\n") + "\n"; have != events {
		t.Errorf("have\n%s\nwant\n%s", have, events)
	}
}

// TestRefusedNetworks: what a cluster cannot have, and what Egret does not serve, is said, and loses nothing.
func TestRefusedNetworks(t *testing.T) {
	for name, test := range map[string]struct{ object, want string }{
		"the cluster's pods": {userNetwork("n", "net", "10.244.0.0/20"), "SyncError, subnet 10.244.0.0/20 overlaps the pod subnet 10.244.0.0/16: choose another range"},
		"the masquerade":     {userNetwork("n", "net", "169.254.0.0/20"), "SyncError, subnet 169.254.0.0/20 overlaps the masquerade subnet"},
		"the hosts' masquerade": {userNetwork("n", "net", "169.254.168.0/22"),
			"SyncError, subnet 169.254.168.0/22 overlaps the masquerade subnet 169.254.169.0/29"},
		"its own join subnet": {userNetwork("n", "net", "100.65.0.0/16"), "SyncError, subnet 100.65.0.0/16 overlaps the own join subnet"},
		"a join subnet without room": {strings.Replace(userNetwork("n", "net", "10.128.0.0/16"), "role: Primary",
			"role: Primary, joinSubnets: [100.70.0.0/17]", 1),
			"SyncError, join subnet 100.70.0.0/17 has addresses for 32766 routers, and nodes of this cluster can have " +
				"numbers up to 32767: name a larger range, such as a /16"},
		"no room for pods": {strings.Replace(userNetwork("n", "net", "10.128.0.0/16"), "hostSubnet: 24",
			"hostSubnet: 30", 1), "SyncError, spec.layer3.subnets: \"10.128.0.0/16\" cannot be cut " +
			"into nodes' subnets of length 30: give a hostSubnet above the length of the range, and of at most 29"},
		"layer 2": {"{apiVersion: k8s.ovn.org/v1, kind: UserDefinedNetwork, metadata: {name: net, namespace: \"n\"}, spec: " +
			"{topology: Layer2, layer2: {role: Primary}}}", "NetworkNotSupported, topology Layer2 is not served: only Layer3 is"},
		"secondary": {strings.Replace(userNetwork("n", "net", "10.128.0.0/16"), "Primary", "Secondary", 1),
			"NetworkNotSupported, role Secondary is not served: only Primary is"},
		"no subnet": {userNetwork("n", "net", "10.128.0.0"), "SyncError, " +
			"spec.layer3.subnets: \"10.128.0.0\" is not a range"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.namespace("n", true, nil)
			c.create(t, test.object)
			c.settle(t)
			if have := c.text(); !strings.Contains(have, test.want) || strings.Contains(have, "definition") {
				t.Errorf("have %s, want %s", have, test.want)
			}
			c.remove(t, world.KindUserNetwork, "n/net")
			c.settle(t)
			if have := c.text(); have != "\n" {
				t.Errorf("it is deleted, and there is still %s", have)
			}
		})
	}
}

// TestNobodyTakesANetworksName: an object whose network has the name of an administrator's gets none, and the
// administrator's stays.
func TestNobodyTakesANetworksName(t *testing.T) {
	c := newCluster()
	c.namespace("a", true, nil)
	c.namespace("b", true, nil)
	c.create(t, definition("a", "net", "b_x", "10.128.0.0/16/24"))
	c.settle(t)
	c.pod("a", "p")
	c.create(t, userNetwork("b", "x", "10.130.0.0/16"))
	c.settle(t)
	const want = `udn b/x: SyncError, NetworkAttachmentDefinition a/net has the name b_x already: rename one of the two
definition a/net of b_x 1
network 1 b_x [{10.128.0.0/16 24}] [100.65.0.0/16] in [a]
`
	if have := c.text(); have != want {
		t.Errorf("have\n%s\nwant\n%s", have, want)
	}
}

// TestNumbersAreNotDrawnAgain: a number that a decision has given, and that the API may have by now, is nobody else's.
func TestNumbersAreNotDrawnAgain(t *testing.T) {
	c := newCluster()
	c.namespace("a", true, nil)
	c.namespace("b", true, nil)
	c.create(t, userNetwork("a", "x", "10.128.0.0/16"))
	c.decide()
	c.create(t, definition("b", "nad", "shared", "10.128.0.0/16/24"))
	c.settle(t)
	for _, want := range []string{"definition a/x of a_x 1\n", "definition b/nad of shared 2\n"} {
		if have := c.text(); !strings.Contains(have, want) {
			t.Errorf("have\n%s\nwant %s", have, want)
		}
	}
}

// TestSubnetsAreAdded: while definitions change one after the other, and while one that is being deleted does not, the
// network stays that of all its namespaces.
func TestSubnetsAreAdded(t *testing.T) {
	c := newCluster()
	for _, ns := range []string{"a", "b", "c"} {
		c.namespace(ns, true, tenant("blue"))
		c.pod(ns, "p")
	}
	c.create(t, clusterNetwork("blue", "blue", "10.128.0.0/16"))
	c.settle(t)
	c.remove(t, world.KindDefinition, "a/blue")
	c.change(t, world.KindClusterNetwork, "blue", func(o metav1.Object) {
		l3 := o.(*v1.ClusterUserDefinedNetwork).Spec.Network.Layer3
		l3.Subnets = append([]v1.Layer3Subnet{{CIDR: "10.130.0.0/16", HostSubnet: 24}}, l3.Subnets...)
	})
	c.settle(t)
	for _, ns := range []string{"a", "b", "c"} {
		if have := c.agent.PrimaryNetwork(ns); have != "cluster_udn_blue" {
			t.Errorf("namespace %s has network %q", ns, have)
		}
	}
	if n := c.agent.Network("cluster_udn_blue"); len(n.Subnets) != 2 {
		t.Errorf("the network has %v", n.Subnets)
	}
}

// TestOrphansAreNotRewritten: an object that is made again with another configuration does not change the network of
// the pods that are there; with the same configuration it takes its definition back.
func TestOrphansAreNotRewritten(t *testing.T) {
	for subnet, want := range map[string]string{
		"10.130.0.0/16": "network 1 a_x [{10.130.0.0/16 24}]", "10.150.0.0/16": "network 1 a_x [{10.130.0.0/16 24}]"} {
		c := newCluster()
		c.namespace("a", true, nil)
		c.pod("a", "p")
		c.create(t, userNetwork("a", "x", "10.130.0.0/16"))
		c.settle(t)
		c.change(t, world.KindDefinition, "a/x", func(o metav1.Object) { o.SetOwnerReferences(nil) })
		c.remove(t, world.KindUserNetwork, "a/x")
		c.settle(t)
		c.create(t, userNetwork("a", "x", subnet))
		c.settle(t)
		if have := c.text(); !strings.Contains(have, want) ||
			strings.Contains(have, "of a former network") != (subnet == "10.150.0.0/16") {
			t.Errorf("made again with %s:\n%s", subnet, have)
		}
	}
}

// TestDefaultsThatAreNamed: join subnets that are the defaults are no other configuration than none.
func TestDefaultsThatAreNamed(t *testing.T) {
	c := newCluster()
	c.namespace("a", true, nil)
	c.create(t, strings.Replace(userNetwork("a", "x", "10.130.0.0/16"), "role: Primary,",
		"role: Primary, joinSubnets: [100.65.0.0/16, 'fd99::/64'],", 1))
	c.settle(t)
	if have := c.agent.PrimaryNetwork("a"); have != "a_x" {
		t.Errorf("network %q", have)
	}
}

// TestTwoNetworksInOneNamespace: of two definitions with numbers, as two controllers at one time can leave them, the
// younger loses its number.
func TestTwoNetworksInOneNamespace(t *testing.T) {
	c := newCluster()
	c.namespace("a", true, tenant("blue"))
	c.pod("a", "p")
	c.create(t, clusterNetwork("blue", "blue", "10.128.0.0/16"))
	c.settle(t)
	c.create(t, userNetwork("a", "x", "10.130.0.0/16"))
	c.settle(t)
	uid := c.objects[world.Entry{Kind: world.KindUserNetwork, Key: "a/x"}].GetUID()
	made := strings.Replace(definition("a", "x", "a_x", "10.130.0.0/16/24"), `name: "x",`, `name: "x", labels: `+
		`{k8s.ovn.org/user-defined-network: ""}, annotations: {k8s.ovn.org/network-id: "9", k8s.ovn.org/network-name: a_x}, `+
		`ownerReferences: [{apiVersion: k8s.ovn.org/v1, kind: UserDefinedNetwork, name: x, controller: true, uid: "`+
		string(uid)+`"}],`, 1)
	c.create(t, made)
	c.settle(t)
	if have := c.text(); strings.Contains(have, "network 9") || c.agent.PrimaryNetwork("a") != "cluster_udn_blue" {
		t.Errorf("have\n%s", have)
	}
}

// TestForgedOwners: a definition in another namespace that names an object as its owner keeps nothing of it.
func TestForgedOwners(t *testing.T) {
	c := newCluster()
	c.namespace("a", true, nil)
	c.namespace("m", true, nil)
	c.create(t, userNetwork("a", "x", "10.130.0.0/16"))
	c.settle(t)
	uid := c.objects[world.Entry{Kind: world.KindUserNetwork, Key: "a/x"}].GetUID()
	c.create(t, strings.Replace(definition("m", "x", "a_x", "10.130.0.0/16/24"), `name: "x",`, `name: "x", finalizers: `+
		`[evil.example.org/x], ownerReferences: [{apiVersion: k8s.ovn.org/v1, kind: UserDefinedNetwork, name: x, controller: `+
		`true, uid: "`+string(uid)+`"}],`, 1))
	c.settle(t)
	c.remove(t, world.KindUserNetwork, "a/x")
	c.settle(t)
	if have := c.text(); strings.Contains(have, "udn a/x") {
		t.Errorf("it is deleted, and there is still\n%s", have)
	}
}

// TestAdministratorsNetworkOutlivesItsDefinition: a definition that an administrator deletes stays until the pods are
// gone, too.
func TestAdministratorsNetworkOutlivesItsDefinition(t *testing.T) {
	c := newCluster()
	c.namespace("a", true, nil)
	c.create(t, definition("a", "nad", "shared", "10.128.0.0/16/24"))
	c.settle(t)
	c.pod("a", "p")
	c.settle(t)
	c.remove(t, world.KindDefinition, "a/nad")
	c.settle(t)
	if have := c.agent.PrimaryNetwork("a"); have != "shared" {
		t.Errorf("with a pod: network %q", have)
	}
	c.show(func(w *world.World) { w.DelPod("a/p") })
	c.settle(t)
	if have := c.text(); have != "\n" {
		t.Errorf("without a pod:\n%s", have)
	}
}

// TestPodsConcernNoNetwork: while no network is to go, pods that come and go have nothing decided again.
func TestPodsConcernNoNetwork(t *testing.T) {
	c := newCluster()
	c.namespace("a", true, nil)
	c.create(t, definition("a", "nad", "shared", "10.128.0.0/16/24"))
	c.settle(t)
	if c.pod("a", "p"); c.decide() {
		t.Error("a pod has all networks decided about again")
	}
}

// TestSameDefinitionChangesNothing: a definition that says the same as before invalidates no reader of its network.
func TestSameDefinitionChangesNothing(t *testing.T) {
	c := newCluster()
	c.namespace("a", true, nil)
	c.create(t, definition("a", "nad", "shared", "10.128.0.0/16/24"))
	c.settle(t)
	var changed []world.Entry
	c.agent.FollowChanges(func(e world.Entry) { changed = append(changed, e) })
	if set(c.agent, c.objects[world.Entry{Kind: world.KindDefinition, Key: "a/nad"}]); len(changed) > 0 {
		t.Errorf("changes %v", changed)
	}
}

// TestDefinitionBecomesAnothers: a definition that its author changes while its number is being written, to one of
// another plugin, has neither number nor finalizer in the end, and can be deleted.
func TestDefinitionBecomesAnothers(t *testing.T) {
	c := newCluster()
	c.namespace("a", true, nil)
	c.create(t, definition("a", "nad", "shared", "10.128.0.0/16/24"))
	c.settle(t)
	c.change(t, world.KindDefinition, "a/nad", func(o metav1.Object) {
		o.(*cniv1.NetworkAttachmentDefinition).Spec.Config = `{"type":"macvlan"}`
	})
	c.settle(t)
	o := c.objects[world.Entry{Kind: world.KindDefinition, Key: "a/nad"}]
	if len(o.GetFinalizers())+len(o.GetAnnotations()) > 0 || c.agent.Network("shared") != nil {
		t.Errorf("have %v, %v; network %v", o.GetFinalizers(), o.GetAnnotations(), c.agent.Network("shared"))
	}
}
