package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/util/compatibility"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/featuregate"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/deploy"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// judge is the API server's own admission plugin with our policies loaded.
type judge struct{ plugin *validating.Plugin }

func newJudge(t *testing.T) judge {
	t.Helper()
	plugin, err := validating.NewPlugin(nil)
	must(t, err)
	objects := policies(t)
	for _, name := range []string{"default", "abc", "egret-system", "egret-node-lease"} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	dynamic := dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
	mapper := meta.NewDefaultRESTMapper(nil)
	initializer.New(client, dynamic, factory, authorizerfactory.NewAlwaysAllowAuthorizer(),
		featuregate.NewFeatureGate(), compatibility.DefaultBuildEffectiveVersion(),
		t.Context().Done(), mapper).Initialize(plugin)
	plugin.SetRESTMapper(mapper)
	must(t, plugin.ValidateInitialization())
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	if !plugin.WaitForReady() {
		t.Fatal("the admission plugin did not become ready")
	}
	return judge{plugin}
}

// policies are the documents of admission-*.yaml with the API server's defaults.
func policies(t *testing.T) []runtime.Object {
	t.Helper()
	everything := &metav1.LabelSelector{}
	equivalent := admissionregistrationv1.Equivalent
	all := decodeAll(t, deploy.Manifests, "admission-*.yaml")
	for _, object := range all {
		if policy, ok := object.(*admissionregistrationv1.ValidatingAdmissionPolicy); ok {
			constraints := policy.Spec.MatchConstraints
			constraints.NamespaceSelector, constraints.ObjectSelector = everything, everything
			constraints.MatchPolicy = &equivalent
		}
	}
	return all
}

// update is a change that a user asks for.
type update struct {
	by       user.Info
	resource string
	sub      string
	old, new *unstructured.Unstructured
}

// refusal is the message with which the change is refused, empty when it is admitted.
func (j judge) refusal(u update) string {
	operation, named := admission.Update, u.new
	var old, changed runtime.Object
	if u.old != nil {
		old = u.old
	}
	if u.new != nil {
		changed = u.new
	}
	switch {
	case u.old == nil:
		operation = admission.Create
	case u.new == nil:
		operation, named = admission.Delete, u.old
	}
	kind := named.GroupVersionKind()
	resource := schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: u.resource}
	attributes := admission.NewAttributesRecord(changed, old, kind, named.GetNamespace(), named.GetName(), resource,
		u.sub, operation, nil, false, u.by)
	err := j.plugin.Validate(context.Background(), attributes, admission.NewObjectInterfacesFromScheme(scheme.Scheme))
	if err != nil {
		return err.Error()
	}
	return ""
}

// agentOf is the agent whose token is bound to the node.
func agentOf(node string) user.Info {
	return &user.DefaultInfo{
		Name:  "system:serviceaccount:egret-system:egret-node",
		Extra: map[string][]string{"authentication.kubernetes.io/node-name": {node}},
	}
}

// kubeletOf is the kubelet of a node, controllerUser egret-controller.
func kubeletOf(node string) user.Info {
	return &user.DefaultInfo{Name: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"}}
}

var controllerUser = &user.DefaultInfo{Name: "system:serviceaccount:egret-system:egret-controller"}

// change edits an object before it is judged.
type change = func(*unstructured.Unstructured)

// node is a Node, pod a Pod on n1, egressNode an EgressNode, service a Service; each is changed by the given functions.
func node(name string, changes ...change) *unstructured.Unstructured {
	return changed("v1", "Node", "", name, map[string]any{"podCIDR": "10.0.0.0/24"}, changes)
}

func pod(changes ...change) *unstructured.Unstructured {
	return changed("v1", "Pod", "default", "web", map[string]any{"nodeName": "n1"}, changes)
}

func egressNode(name string, changes ...change) *unstructured.Unstructured {
	return changed("egret.k8s.ovn.org/v1", "EgressNode", "", name, map[string]any{}, changes)
}

func service(changes ...change) *unstructured.Unstructured {
	return changed("v1", "Service", "default", "web", map[string]any{"clusterIP": "10.96.0.9"}, changes)
}

func event(reporter, instance string) *unstructured.Unstructured {
	return changed("events.k8s.io/v1", "Event", "default", "web-1", nil, []change{func(o *unstructured.Unstructured) {
		o.Object["reportingController"], o.Object["reportingInstance"] = reporter, instance
	}})
}

func changed(version, kind, namespace, name string, spec map[string]any, changes []change) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}
	if namespace != "" {
		object.SetNamespace(namespace)
	}
	for _, change := range changes {
		change(object)
	}
	return object
}

// annotated sets one annotation.
func annotated(key, value string) change {
	return func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{key: value}) }
}

// hosted sets one of the annotations with facts of a host, allocated one that the controller writes.
func hosted(key, value string) change    { return annotated(v1.Prefix+key, value) }
func allocated(key, value string) change { return annotated(v1.Prefix+key, value) }

func cordoned(value string) change { return annotated(v1.AnnotationEgressCordon, value) }

// hosting has a Node be the host of an EgressService, by the label that says so.
func hosting(o *unstructured.Unstructured) { hostingWith("")(o) }

func hostingWith(value string) change {
	return func(o *unstructured.Unstructured) {
		o.SetLabels(map[string]string{v1.LabelEgressService + "shop-web": value})
	}
}

// egressService is an EgressService, whose status anybody may have written.
func egressService(host string) *unstructured.Unstructured {
	return changed("k8s.ovn.org/v1", "EgressService", "default", "web", nil, []change{
		func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"host": host} },
	})
}

func labelled(o *unstructured.Unstructured) {
	o.SetLabels(map[string]string{v1.LabelEgressAssignable: ""})
}

func owned(o *unstructured.Unstructured) { ownedBy("n1")(o) }

func ownedBy(node string) change {
	return func(o *unstructured.Unstructured) {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: "u"}})
	}
}

func finalized(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.org/keep"}) }

func respecified(o *unstructured.Unstructured) {
	o.Object["spec"] = map[string]any{"nodeName": "n1", "unschedulable": true}
}

// conditioned gives a Service a condition, balanced an address of a load balancer.
func conditioned(kind string) change {
	return func(o *unstructured.Unstructured) {
		o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": kind, "status": "True"}}}
	}
}

func balanced(o *unstructured.Unstructured) {
	ingress := []any{map[string]any{"ip": "172.18.0.9"}}
	o.Object["status"] = map[string]any{"loadBalancer": map[string]any{"ingress": ingress}}
}

// onNode is a change of annotations of n1 that somebody asks for, onPod the same of the pod.
func onNode(by user.Info, c change) update { return update{by, "nodes", "", node("n1"), node("n1", c)} }
func onPod(by user.Info, c change) update  { return update{by, "pods", "", pod(), pod(c)} }

const (
	gatewayOfV4 = `{"default":{"mode":"shared","bridge-id":"breth0","interface-id":"breth0_n1","mac-address":"02:00:00:00:00:02",` +
		`"ip-addresses":["172.18.0.2/16"],"next-hops":["172.18.0.1"],"node-port-enable":"true"}}`
	podNetworksOf = `{"default":{"ip_addresses":["10.244.1.5/24","fd00:10:244:1::5/64"],"mac_address":"0a:58:0a:f4:01:05",` +
		`"gateway_ips":["10.244.1.1","fd00:10:244:1::1"],"role":"primary"}}`
)

// whatAgentsWrite are the annotations that HostAnnotations makes.
func whatAgentsWrite() map[string]string {
	return kube.HostAnnotations(kube.HostFacts{
		Zone: "n1", ChassisID: "n1", Mode: "shared", Bridge: "breth0", UplinkMAC: "02:00:00:00:00:02",
		ManagementMAC: "0a:58:0a:f4:01:02",
		Primary:       []netip.Prefix{netip.MustParsePrefix("172.18.0.2/16"), netip.MustParsePrefix("fd00:18::2/64")},
		HostCIDRs:     []netip.Prefix{netip.MustParsePrefix("172.18.0.2/16"), netip.MustParsePrefix("fd00:18::2/64")},
		Gateways:      []netip.Addr{netip.MustParseAddr("172.18.0.1"), netip.MustParseAddr("fd00:18::1")},
	})
}

// whatTheControllerWrites are the annotations of an allocation, and the record.
func whatTheControllerWrites() map[string]string {
	both := []netip.Prefix{netip.MustParsePrefix("100.64.0.3/16"), netip.MustParsePrefix("fd98::3/64")}
	further := map[string]world.NodeNetwork{}
	for i := range 1000 {
		further[fmt.Sprintf("shop_blue%d", i)] = world.NodeNetwork{Subnets: both}
	}
	for _, name := range []string{"a", "fd00/1", `of "quotes" \ <and> ü`} {
		further[name] = world.NodeNetwork{Subnets: both}
	}
	out := kube.AllocationAnnotations(world.Allocation{ID: 3, Subnets: both, Join: both, Transit: both,
		Further: further})
	out[v1.AnnotationRecordedAddresses] = kube.RecordAnnotation(compiletest.Recorded(3).Record)
	return out
}

// podNetworks is the annotation of a pod as the agent encodes it.
func podNetworks(t *testing.T, n cniserver.PodNetwork) string {
	t.Helper()
	text, err := json.Marshal(cniserver.PodNetworks{ref.DefaultNetwork: n})
	must(t, err)
	return string(text)
}

// TestProgramsMayWriteWhatTheyWrite: a form that a program writes and its policy refuses would keep a node out of the
// cluster.
func TestProgramsMayWriteWhatTheyWrite(t *testing.T) {
	j := newJudge(t)
	single := podNetworks(t, cniserver.PodNetwork{IPs: []string{"10.244.1.5/24"}, MAC: "0a:58:0a:f4:01:05",
		Gateways:  []string{"10.244.1.1"},
		IPAddress: "10.244.1.5/24", Gateway: "10.244.1.1", Role: "primary"})
	dual := podNetworks(t, cniserver.PodNetwork{IPs: []string{"10.244.1.5/24", "fd00:10:244:1::5/64"},
		MAC:      "0a:58:0a:f4:01:05",
		Gateways: []string{"10.244.1.1", "fd00:10:244:1::1"}, Role: "primary"})
	bare := kube.HostAnnotations(kube.HostFacts{Zone: "n1", ChassisID: "n1", Mode: "local", Bridge: "breth0"})
	for name, u := range map[string]update{
		"agent's Node": onNode(agentOf("n1"),
			func(o *unstructured.Unstructured) { o.SetAnnotations(whatAgentsWrite()) }),
		"agent's bare Node": onNode(agentOf("n1"), func(o *unstructured.Unstructured) { o.SetAnnotations(bare) }),
		"agent's pod":       onPod(agentOf("n1"), annotated(v1.AnnotationPodNetworks, dual)),
		"single-stack pod":  onPod(agentOf("n1"), annotated(v1.AnnotationPodNetworks, single)),
		"controller's Node": onNode(controllerUser,
			func(o *unstructured.Unstructured) { o.SetAnnotations(whatTheControllerWrites()) }),
	} {
		t.Run(name, func(t *testing.T) {
			if have := j.refusal(u); have != "" {
				t.Errorf("refused: %s", have)
			}
		})
	}
}

func TestAdmitted(t *testing.T) {
	j := newJudge(t)
	n1, admin := agentOf("n1"), &user.DefaultInfo{Name: "admin"}
	cidrs := hosted("host-cidrs", `["172.18.0.2/16"]`)
	for name, u := range map[string]update{
		"own Node":              {n1, "nodes", "", node("n1"), node("n1", cidrs)},
		"no addresses":          onNode(n1, hosted("host-cidrs", "null")),
		"annotation taken away": {n1, "nodes", "", node("n1", cidrs), node("n1")},
		"others' are there": {n1, "nodes", "", node("n1", annotated("example.org/x", "x")),
			node("n1", annotated("example.org/x", "x"))},
		"cordon for a shutdown": onNode(n1, cordoned("shutdown/0d5c2f0e-8f3b-4c1a-9a53-6f1f4d8e7b11")),
		"cordon for a drain":    onNode(n1, cordoned("shutdown/0d5c2f0e-8f3b-4c1a-9a53-6f1f4d8e7b11.drain")),
		"its own cordon lifted": {n1, "nodes", "", node("n1", cordoned("shutdown/a")), node("n1")},
		"pod on the node":       onPod(n1, annotated(v1.AnnotationPodNetworks, podNetworksOf)),
		"pod's taken away":      {n1, "pods", "", pod(annotated(v1.AnnotationPodNetworks, podNetworksOf)), pod()},
		"EgressNode made":       {n1, "egressnodes", "", nil, egressNode("n1", owned)},
		"EgressNode changed":    {n1, "egressnodes", "", egressNode("n1"), egressNode("n1", owned)},
		"EgressNode with a label": {n1, "egressnodes", "", egressNode("n1", labelled), egressNode("n1", labelled,
			owned)},
		"agent's Event":      {n1, "events", "", nil, event("egret-node", "n1")},
		"controller's Event": {controllerUser, "events", "", nil, event("egret-controller", "n1")},
		"nothing is recorded": onNode(controllerUser, annotated(v1.AnnotationRecordedAddresses,
			kube.RecordAnnotation(world.Record{}))),
		"allocation problem": onNode(controllerUser, annotated(v1.AnnotationAllocationProblem,
			"no subnet is left")),
		"host's label":       onNode(controllerUser, hosting),
		"host's label taken": {controllerUser, "nodes", "", node("n1", hosting), node("n1")},
		"value taken away":   {controllerUser, "nodes", "", node("n1", hostingWith("x")), node("n1", hosting)},
		"EgressService's status": {controllerUser, "egressservices", "status", egressService(""),
			egressService("n1")},
		"EgressService of anybody": {&user.DefaultInfo{Name: "tenant"}, "egressservices", "", nil, egressService("")},
		"kubelet of a host's":      {kubeletOf("n1"), "nodes", "", node("n1", hosting), node("n1", hosting)},
		"Service refused": {controllerUser, "services", "status", service(),
			service(conditioned(v1.ConditionRefused))},
		"Service served": {controllerUser, "services", "status", service(),
			service(conditioned(v1.ConditionServed))},
		"kubelet's heartbeat": {kubeletOf("n1"), "nodes", "status", node("n1", cidrs), node("n1", cidrs)},
		"kubelet's own": onNode(kubeletOf("n1"),
			annotated("volumes.kubernetes.io/controller-managed-attach-detach", "true")),
		"kubelet of a host": {kubeletOf("n1"), "nodes", "", node("n1", labelled), node("n1", labelled,
			annotated("example.org/x", "x"))},
		"kubelet registers":       {kubeletOf("n1"), "nodes", "", nil, node("n1")},
		"kubelet, pod's status":   {kubeletOf("n1"), "pods", "status", pod(cidrs), pod(cidrs)},
		"another user, any label": {admin, "nodes", "", node("n1"), node("n1", labelled)},
		"another user, any node":  {admin, "egressnodes", "", nil, egressNode("n2")},
	} {
		t.Run(name, func(t *testing.T) {
			if have := j.refusal(u); have != "" {
				t.Errorf("refused: %s", have)
			}
		})
	}
}

// refused is a change with a part of the message that it is refused with.
type refused struct {
	update
	want string
}

func (j judge) refusesAll(t *testing.T, all map[string]refused) {
	t.Helper()
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			if have := j.refusal(c.update); !strings.Contains(have, c.want) {
				t.Errorf("want a refusal with %q, have %q", c.want, have)
			}
		})
	}
}

func TestAgentsAreRefused(t *testing.T) {
	n1 := agentOf("n1")
	unbound := &user.DefaultInfo{Name: n1.GetName()}
	const (
		annotationsOnly = "the agent of node n1 may change annotations of "
		noNode          = "this token of egret-node names no node"
	)
	host := hosted("host-cidrs", `["172.18.0.2/16"]`)
	newJudge(t).refusesAll(t, map[string]refused{
		"Node of another": {update{n1, "nodes", "", node("n2"), node("n2", host)},
			"the agent of node n1 may write its own Node only, not n2"},
		"label":        {onNode(n1, labelled), annotationsOnly + "its Node"},
		"host's label": {onNode(n1, hosting), annotationsOnly + "its Node"},
		"EgressService's status": {update{n1, "egressservices", "status", egressService(""), egressService("n1")},
			"the status of an EgressService is egret-controller's"},
		"a tenant's status": {update{&user.DefaultInfo{Name: "tenant"}, "egressservices", "status", egressService(""),
			egressService("n1")}, "the status of an EgressService is egret-controller's"},
		"spec":                 {onNode(n1, respecified), annotationsOnly + "its Node"},
		"finalizer":            {onNode(n1, finalized), annotationsOnly + "its Node"},
		"owner":                {onNode(n1, owned), annotationsOnly + "its Node"},
		"Node deleted":         {update{n1, "nodes", "", node("n1"), nil}, annotationsOnly + "its Node"},
		"another's annotation": {onNode(n1, annotated("example.org/x", "x")), "not example.org/x"},
		"an unknown one":       {onNode(n1, annotated("egret.k8s.ovn.org/x", "x")), "not egret.k8s.ovn.org/x"},
		"similar prefix":       {onNode(n1, annotated("not-k8s.ovn.org/x", "x")), "not not-k8s.ovn.org/x"},
		"another's taken away": {update{n1, "nodes", "", node("n1", annotated("example.org/x", "x")), node("n1")},
			"not example.org/x"},
		"own subnets": {onNode(n1, allocated("node-subnets", "x")),
			"allocated by egret-controller: the agent of node n1"},
		"own id taken away": {update{n1, "nodes", "", node("n1", allocated("node-id", "3")), node("n1")},
			"allocated by egret-controller"},
		"own record": {onNode(n1, annotated(v1.AnnotationRecordedAddresses, `{"addresses":["172.18.0.3"]}`)),
			"allocated by egret-controller"},
		"own record taken away": {update{n1, "nodes", "", node("n1", annotated(v1.AnnotationRecordedAddresses,
			`{"addresses":["172.18.0.3"]}`)), node("n1")}, "allocated by egret-controller"},
		"allocation problem": {onNode(n1, annotated(v1.AnnotationAllocationProblem, "x")),
			"allocated by egret-controller"},
		"status of another":   {update{n1, "nodes", "status", node("n2"), node("n2", host)}, "its own Node only"},
		"Node, token unbound": {update{unbound, "nodes", "", node("n1"), node("n1", host)}, noNode},
		"pod elsewhere": {onPod(agentOf("n2"), host),
			"the agent of node n2 may write pods of its own node only, not default/web"},
		"pod's label":        {onPod(n1, labelled), annotationsOnly + "a pod"},
		"pod's spec":         {onPod(n1, respecified), annotationsOnly + "a pod"},
		"pod made":           {update{n1, "pods", "", nil, pod()}, "pods of its own node only"},
		"pod's other":        {onPod(n1, host), "not k8s.ovn.org/host-cidrs"},
		"pod, token unbound": {onPod(unbound, host), noNode},
		"EgressNode of another": {update{n1, "egressnodes", "", egressNode("n2"), egressNode("n2", owned)},
			"the agent of node n1 may write the EgressNode n1 only, not n2"},
		"EgressNode made":     {update{n1, "egressnodes", "", nil, egressNode("n2")}, "EgressNode n1 only, not n2"},
		"EgressNode deleted":  {update{n1, "egressnodes", "", egressNode("n2"), nil}, "EgressNode n1 only, not n2"},
		"EgressNode, unbound": {update{unbound, "egressnodes", "", nil, egressNode("n1")}, noNode},
		"EgressNode kept": {update{n1, "egressnodes", "", egressNode("n1"), egressNode("n1", finalized)},
			"owned by its Node"},
		"EgressNode of n2": {update{n1, "egressnodes", "", nil, egressNode("n1", ownedBy("n2"))},
			"owned by its Node"},
		"Event of the other": {update{n1, "events", "", nil, event("egret-node", "n2")}, "in its own name"},
		"Event of another":   {update{n1, "events", "", nil, event("kubelet", "n1")}, "in its own name"},
	})
}

// TestValuesAreRefused: what an agent writes is read by all others, who make rows of it.
func TestValuesAreRefused(t *testing.T) {
	n1 := agentOf("n1")
	gateway := func(old, new string) change {
		return hosted("l3-gateway-config", strings.Replace(gatewayOfV4, old, new, 1))
	}
	network := func(old, new string) change {
		return annotated(v1.AnnotationPodNetworks, strings.Replace(podNetworksOf, old, new, 1))
	}
	many := `["10.0.0.1/8"` + strings.Repeat(`,"10.0.0.1/8"`, 64) + `]`
	newJudge(t).refusesAll(t, map[string]refused{
		"another's chassis":   {onNode(n1, hosted("node-chassis-id", "n2")), "of node n1 are its own name"},
		"another's zone":      {onNode(n1, hosted("zone-name", "n2")), "of node n1 are its own name"},
		"no prefix":           {onNode(n1, hosted("host-cidrs", `["172.18.0.2"]`)), "host-cidrs"},
		"prefix out of range": {onNode(n1, hosted("host-cidrs", `["172.18.0.300/16"]`)), "a prefix that is none"},
		"length out of range": {onNode(n1, hosted("node-primary-ifaddr", `{"ipv4":"172.18.0.2/40"}`)),
			"a prefix that is none"},
		"too many": {onNode(n1, hosted("host-cidrs", many)), "more than 64"},
		"too long": {onNode(n1, hosted("host-cidrs", "["+strings.Repeat(" ", 5000)+"]")),
			"longer than 4096"},
		"no families": {onNode(n1, hosted("node-primary-ifaddr", `["172.18.0.2/16"]`)),
			"node-primary-ifaddr"},
		"IPv6 for IPv4": {onNode(n1, hosted("node-primary-ifaddr", `{"ipv4":"fd00:18::2/64"}`)),
			"node-primary-ifaddr"},
		"MAC of a group": {onNode(n1, hosted("node-mgmt-port-mac-addresses",
			`{"default":"01:00:5e:00:00:01"}`)), "node-mgmt-port-mac"},
		"MAC with a line break": {onNode(n1, gateway(`00:02"`, `00:02\nactions=drop"`)), "l3-gateway-config"},
		"MAC and a flow":        {onNode(n1, gateway(`00:02"`, `00:02,actions=drop"`)), "l3-gateway-config"},
		"next hop is none":      {onNode(n1, gateway("172.18.0.1\"", "172.18.0.1.1\"")), "l3-gateway-config"},
		"address is none":       {onNode(n1, gateway("172.18.0.2/16", "172.18.0.2/99")), "a prefix that is none"},
		"mode is none":          {onNode(n1, gateway("shared", "own")), "l3-gateway-config"},
		"something more":        {onNode(n1, gateway(`"true"}`, `"true","x":"y"}`)), "l3-gateway-config"},
		"a line more":           {onNode(n1, hosted("l3-gateway-config", gatewayOfV4+"\n")), "l3-gateway-config"},
		"cordon as people":      {onNode(n1, cordoned("maintenance")), "leaves alone what people have set"},
		"people's cordon": {update{n1, "nodes", "", node("n1", cordoned("x")), node("n1")},
			"leaves alone what people have set"},
		"pod's MAC":     {onPod(n1, network("0a:58", "0b:58")), "pod-networks"},
		"pod's address": {onPod(n1, network("10.244.1.5/24", "10.244.1.500/24")), "pod-networks"},
		"pod's third address": {onPod(n1, network(`["10.244.1.5/24"`, `["10.244.1.5/24","10.244.1.6/24"`)),
			"pod-networks"},
		"pod's with a character": {onPod(n1, network("10.244.1.5/24", "10.244.1.5/24\\u0000")), "pod-networks"},
	})
}

func TestKubeletsAreRefused(t *testing.T) {
	n1 := kubeletOf("n1")
	const ours, label = "a kubelet may not change them", "a kubelet may not say whether its node hosts egress IPs"
	const host = "labels egress-service.k8s.ovn.org/* are egret-controller's"
	all := map[string]refused{
		"label":              {onNode(n1, labelled), label},
		"label by status":    {update{n1, "nodes", "status", node("n1"), node("n1", labelled)}, label},
		"label taken away":   {update{n1, "nodes", "", node("n1", labelled), node("n1")}, label},
		"registers with it":  {update{n1, "nodes", "", nil, node("n1", labelled)}, label},
		"host's label":       {onNode(n1, hosting), host},
		"host's label taken": {update{n1, "nodes", "", node("n1", hosting), node("n1")}, host},
		"host's label changed": {update{n1, "nodes", "status", node("n1", hosting), node("n1", hostingWith("x"))},
			host},
		"registers as a host": {update{n1, "nodes", "", nil, node("n1", hosting)}, host},
		"registers with id":   {update{n1, "nodes", "", nil, node("n1", allocated("node-id", "3"))}, ours},
		"by status":           {update{n1, "nodes", "status", node("n1"), node("n1", allocated("node-id", "3"))}, ours},
		"record taken away": {update{n1, "nodes", "", node("n1", annotated(v1.AnnotationRecordedAddresses,
			`{"addresses":["172.18.0.3"]}`)), node("n1")}, ours},
		"taken away": {update{n1, "nodes", "", node("n1", allocated("node-id", "3")), node("n1")}, ours},
		"mirror pod": {update{n1, "pods", "", nil, pod(annotated(v1.AnnotationPodNetworks, podNetworksOf))},
			ours},
		"pod's by status": {update{n1, "pods", "status", pod(), pod(annotated(v1.AnnotationPodNetworks,
			podNetworksOf))}, ours},
	}
	for _, key := range append(slices.Collect(maps.Keys(whatAgentsWrite())),
		slices.Collect(maps.Keys(whatTheControllerWrites()))...) {
		all[key] = refused{onNode(n1, annotated(key, "x")), ours}
	}
	newJudge(t).refusesAll(t, all)
}

func TestControllersAreRefused(t *testing.T) {
	c := controllerUser
	const theRest = "may change annotations and labels of a Node and nothing else"
	all := map[string]refused{
		"label":         {onNode(c, labelled), "may change labels egress-service.k8s.ovn.org/* only"},
		"label's value": {onNode(c, hostingWith("x")), "without a value"},
		"label taken away": {update{c, "nodes", "", node("n1", labelled), node("n1")},
			"may change labels egress-service.k8s.ovn.org/* only"},
		"spec":         {onNode(c, respecified), theRest},
		"Node deleted": {update{c, "nodes", "", node("n1"), nil}, theRest},
		"another's":    {onNode(c, annotated("example.org/x", "x")), "not example.org/x"},
		"id":           {onNode(c, allocated("node-id", "0")), "node-id is a decimal number from 1"},
		"subnet": {onNode(c, allocated("node-subnets", `{"default":["10.244.1.0/99"]}`)),
			"a prefix that is none"},
		"network's subnet": {onNode(c, allocated("node-subnets", `{"a":["10.128.1.0/99"],"default":[]}`)),
			"a prefix that is none"},
		"no default network": {onNode(c, allocated("node-subnets", `{"a":["10.128.1.0/24"]}`)),
			"node-subnets has another form"},
		"subnets' form": {onNode(c, allocated("node-subnets", "10.244.1.0/24")), "node-subnets has another form"},
		"transit": {onNode(c, allocated("node-transit-switch-port-ifaddr", "x")),
			"node-transit-switch-port-ifaddr has another form"},
		"join": {onNode(c, allocated("node-gateway-router-lrp-ifaddrs", "x")),
			"node-gateway-router-lrp-ifaddrs has another form"},
		"record": {onNode(c, annotated(v1.AnnotationRecordedAddresses, `["172.18.0.3"]`)),
			"recorded-addresses has another form"},
		"recorded address": {onNode(c, annotated(v1.AnnotationRecordedAddresses, `{"addresses":["172.18.0.300"]}`)),
			"recorded-addresses has another form"},
		"recorded MAC": {onNode(c, annotated(v1.AnnotationRecordedAddresses,
			`{"addresses":[],"mac-address":"01:00:5e:00:00:01"}`)), "recorded-addresses has another form"},
		"Service's balancer": {update{c, "services", "status", service(), service(balanced)}, "nothing else of it"},
		"Service's condition": {update{c, "services", "status", service(), service(conditioned("Other"))},
			"nothing else of it"},
		"Service's label": {update{c, "services", "status", service(), service(labelled)}, "nothing else of it"},
		"Service's key": {update{c, "services", "status", service(), service(annotated("x", "x"))},
			"nothing else of it"},
		"Event of another": {update{c, "events", "", nil, event("kubelet", "n1")}, "in its own name"},
	}
	for key := range whatAgentsWrite() {
		all[key] = refused{onNode(c, annotated(key, "x")), "may change the annotations that it allocates only"}
	}
	newJudge(t).refusesAll(t, all)
}

// TestAddressesAreTheAgents: nobody who may write pods gives one an address, by whatever way annotations come to a pod.
func TestAddressesAreTheAgents(t *testing.T) {
	tenant, own := &user.DefaultInfo{Name: "tenant"}, annotated(v1.AnnotationPodNetworks, podNetworksOf)
	other := annotated(v1.AnnotationPodNetworks, strings.ReplaceAll(podNetworksOf, "10.244.1.5", "10.244.1.6"))
	const says = `user "tenant" is not allowed to set the following annotations on pod: "web": ` +
		`[k8s.ovn.org/pod-networks]`
	replicaSets := &user.DefaultInfo{Name: "system:serviceaccount:kube-system:replicaset-controller"}
	nameless := pod(own)
	nameless.SetName("")
	nameless.SetGenerateName("web-")
	binding := func(changes ...change) *unstructured.Unstructured {
		return changed("v1", "Binding", "default", "web", nil, changes)
	}
	all := map[string]refused{
		"made":        {update{tenant, "pods", "", nil, pod(own)}, says},
		"of a set":    {update{replicaSets, "pods", "", nil, nameless}, `on pod: "web-"`},
		"bound":       {update{tenant, "pods", "binding", nil, binding(own)}, says},
		"Binding":     {update{tenant, "bindings", "", nil, binding(own)}, says},
		"controllers": {onPod(controllerUser, own), "is not allowed to set"},
	}
	for _, sub := range []string{"", "status", "ephemeralcontainers", "resize"} {
		all["set "+sub] = refused{update{tenant, "pods", sub, pod(), pod(own)}, says}
		all["changed "+sub] = refused{update{tenant, "pods", sub, pod(own), pod(other)}, says}
		all["removed "+sub] = refused{update{tenant, "pods", sub, pod(own), pod()}, says}
	}
	j := newJudge(t)
	j.refusesAll(t, all)
	for name, u := range map[string]update{
		"made without":       {tenant, "pods", "", nil, pod()},
		"another annotation": {tenant, "pods", "", nil, pod(annotated("k8s.ovn.org/x", "x"))},
		"a label beside it":  {tenant, "pods", "", pod(own), pod(own, labelled)},
		"its status":         {tenant, "pods", "status", pod(own), pod(own, conditioned("Ready"))},
		"deleted":            {tenant, "pods", "", pod(own), nil},
		"bound without":      {tenant, "pods", "binding", nil, binding()},
		"who may do all":     onPod(&user.DefaultInfo{Name: "admin", Groups: []string{"system:masters"}}, own),
	} {
		if have := j.refusal(u); have != "" {
			t.Errorf("%s: refused: %s", name, have)
		}
	}
}

// egressIP is one with what the given functions make of it.
func egressIP(changes ...change) *unstructured.Unstructured {
	return changed("k8s.ovn.org/v1", "EgressIP", "", "prod", map[string]any{"egressIPs": []any{"172.18.0.33"}}, changes)
}

// TestMarkIsTheControllers: nobody makes an EgressIP with a mark. The controller alone gives it one, or another one, as
// all that it writes. What is changed beside it passes. The words are those that OVN-Kubernetes' own tests look for.
func TestMarkIsTheControllers(t *testing.T) {
	j, admin := newJudge(t), &user.DefaultInfo{Name: "admin"}
	marked := func(mark string) change { return annotated(v1.AnnotationEgressIPMark, mark) }
	first, second := marked("50000"), marked("50001")
	const (
		create = `EgressIP resources cannot be created with the "k8s.ovn.org/egressip-mark" annotation. ` +
			`This annotation is managed by the system.`
		modify = `The "k8s.ovn.org/egressip-mark" annotation cannot be modified or removed once set. ` +
			`This annotation is managed by the system.`
		alone = "of an EgressIP, a number from 50000 to 55000, and nothing else of it"
	)
	none := func(mark string) update {
		return update{controllerUser, "egressips", "", egressIP(), egressIP(marked(mark))}
	}
	c, other := controllerUser, annotated(v1.AnnotationWhenUnassigned, "drop")
	both := func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{v1.AnnotationEgressIPMark: "50000", v1.AnnotationWhenUnassigned: "drop"})
	}
	j.refusesAll(t, map[string]refused{
		"made":                  {update{admin, "egressips", "", nil, egressIP(first)}, create},
		"added":                 {update{admin, "egressips", "", egressIP(), egressIP(first)}, modify},
		"changed":               {update{admin, "egressips", "", egressIP(first), egressIP(second)}, modify},
		"taken away":            {update{admin, "egressips", "", egressIP(first), egressIP()}, modify},
		"removed by controller": {update{c, "egressips", "", egressIP(first), egressIP()}, modify},
		"too low":               {none("49999"), alone},
		"too high":              {none("55001"), alone},
		"no number":             {none("50000x"), alone},
		"made by controller":    {update{c, "egressips", "", nil, egressIP()}, alone},
		"deleted by controller": {update{c, "egressips", "", egressIP(first), nil}, alone},
		"label by controller":   {update{c, "egressips", "", egressIP(first), egressIP(first, labelled)}, alone},
		"another annotation":    {update{c, "egressips", "", egressIP(first), egressIP(both)}, alone},
		"annotation removed":    {update{c, "egressips", "", egressIP(both), egressIP(first)}, alone},
		"finalizer": {update{c, "egressips", "", egressIP(first), egressIP(first, protectedNetwork)},
			alone},
		"addresses": {update{c, "egressips", "", egressIP(first), egressIP(first, func(o *unstructured.Unstructured) {
			o.Object["spec"] = map[string]any{"egressIPs": []any{"172.18.0.34"}}
		})}, alone},
	})
	for name, u := range map[string]update{
		"made without":        {admin, "egressips", "", nil, egressIP()},
		"another annotation":  {admin, "egressips", "", egressIP(), egressIP(annotated("example.org/x", "x"))},
		"a label of a marked": {admin, "egressips", "", egressIP(first), egressIP(first, labelled)},
		"controller marks":    {c, "egressips", "", egressIP(), egressIP(first)},
		"the last mark":       none("55000"),
		"one in between":      none("54999"),
		"controller replaces": {c, "egressips", "", egressIP(first), egressIP(second)},
		"beside another":      {c, "egressips", "", egressIP(other), egressIP(both)},
		"its status":          {c, "egressips", "status", egressIP(first), egressIP(first, conditioned("Ready"))},
		"deleted":             {admin, "egressips", "", egressIP(first), nil},
	} {
		if have := j.refusal(u); have != "" {
			t.Errorf("%s: refused: %s", name, have)
		}
	}
}

// TestWhenUnassignedIsReadable: a value that says nothing is refused, and one that is there already keeps no change
// out.
func TestWhenUnassignedIsReadable(t *testing.T) {
	j, admin := newJudge(t), &user.DefaultInfo{Name: "admin"}
	set := func(value string) change { return annotated(v1.AnnotationWhenUnassigned, value) }
	const says = `when-unassigned is "drop", or the annotation is left out`
	asks := func(value string) *unstructured.Unstructured {
		s := egressService("")
		set(value)(s)
		return s
	}
	j.refusesAll(t, map[string]refused{
		"a typo": {update{admin, "egressips", "", nil, egressIP(set("dorp"))}, says},
		"empty":  {update{admin, "egressips", "", egressIP(), egressIP(set(""))}, says},
		"nodeIP": {update{admin, "egressips", "", egressIP(set("drop")), egressIP(set("NodeIP"))},
			says},
		"an EgressService's typo":   {update{admin, "egressservices", "", nil, asks("dorp")}, says},
		"an EgressService's NodeIP": {update{admin, "egressservices", "", asks("drop"), asks("NodeIP")}, says},
	})
	for name, u := range map[string]update{
		"made":           {admin, "egressips", "", nil, egressIP(set("drop"))},
		"capitals":       {admin, "egressips", "", egressIP(), egressIP(set("Drop"))},
		"blanks":         {admin, "egressips", "", egressIP(), egressIP(set(" DROP"))},
		"taken away":     {admin, "egressips", "", egressIP(set("dorp")), egressIP()},
		"as it was":      {admin, "egressips", "", egressIP(set("dorp")), egressIP(set("dorp"), labelled)},
		"EgressService":  {admin, "egressservices", "", nil, asks(" Drop")},
		"its typo stays": {admin, "egressservices", "", asks("dorp"), asks("dorp")},
		"its typo goes":  {admin, "egressservices", "", asks("dorp"), egressService("")},
	} {
		if have := j.refusal(u); have != "" {
			t.Errorf("%s: refused: %s", name, have)
		}
	}
}

// TestOverrideIsReadable: so it is with the annotation that keeps EgressServices from an EgressIP's pods.
func TestOverrideIsReadable(t *testing.T) {
	j, admin := newJudge(t), &user.DefaultInfo{Name: "admin"}
	set := func(value string) change { return annotated(v1.AnnotationOverride, value) }
	const says = `override-by-egress-services is "never", or the annotation is left out`
	j.refusesAll(t, map[string]refused{
		"a typo": {update{admin, "egressips", "", nil, egressIP(set("nver"))}, says},
		"empty":  {update{admin, "egressips", "", egressIP(), egressIP(set(""))}, says},
		"always": {update{admin, "egressips", "", egressIP(set("never")), egressIP(set("always"))}, says},
	})
	for name, u := range map[string]update{
		"made":       {admin, "egressips", "", nil, egressIP(set("never"))},
		"capitals":   {admin, "egressips", "", egressIP(), egressIP(set(" Never"))},
		"taken away": {admin, "egressips", "", egressIP(set("never")), egressIP()},
		"as it was":  {admin, "egressips", "", egressIP(set("nver")), egressIP(set("nver"), labelled)},
	} {
		if have := j.refusal(u); have != "" {
			t.Errorf("%s: refused: %s", name, have)
		}
	}
}

// TestNodeSelectorValues: a selector of nodes that asks for a value which no label can have is refused, in either form
// and of either kind; whatever else it has passes, as do all values that labels can have, and one that is there already
// keeps no change out. That the policy's pattern is Kubernetes' own, a sample of values says.
func TestNodeSelectorValues(t *testing.T) {
	j, admin := newJudge(t), &user.DefaultInfo{Name: "admin"}
	const says = "elector has a value that no label can have: write at most 63 letters"
	label := func(value string) map[string]any {
		return map[string]any{"matchLabels": map[string]any{"sound": "x", "color": value}}
	}
	among := func(values ...any) map[string]any {
		return map[string]any{"matchExpressions": []any{map[string]any{"key": "sound", "operator": "Exists"},
			map[string]any{"key": "color", "operator": "NotIn", "values": values}}}
	}
	kinds := map[string]func(selector map[string]any) *unstructured.Unstructured{
		"egressips": func(selector map[string]any) *unstructured.Unstructured {
			return egressIP(func(o *unstructured.Unstructured) {
				o.Object["spec"].(map[string]any)["egressNodeSelector"] = selector
			})
		},
		"egressservices": func(selector map[string]any) *unstructured.Unstructured {
			s := egressService("")
			s.Object["spec"] = map[string]any{"nodeSelector": selector}
			return s
		},
	}
	values := []string{"", "a", "A-b_c.9", "9", "-", "a ", " a", "ä", "a/b", "_a", "a.", "a\n", strings.Repeat("x", 63),
		strings.Repeat("x", 64)}
	for resource, of := range kinds {
		for _, v := range values {
			want := ""
			if len(validation.IsValidLabelValue(v)) > 0 {
				want = says
			}
			for _, selector := range []map[string]any{label(v), among("x", v)} {
				for _, u := range []update{{admin, resource, "", nil, of(selector)},
					{admin, resource, "", of(label("x")), of(selector)}} {
					if have := j.refusal(u); (have == "") != (want == "") || !strings.Contains(have, want) {
						t.Errorf("%s: %v: have %q, want %q", resource, selector, have, want)
					}
				}
			}
		}
		if have := j.refusal(update{admin, resource, "", of(label("-")), of(label("-"))}); have != "" {
			t.Errorf("%s as it was: refused: %s", resource, have)
		}
		if have := j.refusal(update{admin, resource, "", of(label("-")), of(label("x"))}); have != "" {
			t.Errorf("%s is mended: refused: %s", resource, have)
		}
	}
}
