package deploy_test

import (
	"context"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

	"github.com/egret-net/egret/deploy"
)

// judge is the API server's own admission plugin with our policies loaded.
type judge struct{ plugin *validating.Plugin }

func newJudge(t *testing.T) judge {
	t.Helper()
	plugin, err := validating.NewPlugin(nil)
	must(t, err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	client := fake.NewClientset(append(policies(t), namespace)...)
	factory := informers.NewSharedInformerFactory(client, 0)
	dynamic := dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
	mapper := meta.NewDefaultRESTMapper(nil)
	initializer.New(client, dynamic, factory, authorizerfactory.NewAlwaysAllowAuthorizer(), featuregate.NewFeatureGate(), compatibility.DefaultBuildEffectiveVersion(),
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

// policies are the documents of admission.yaml with the API server's defaults.
func policies(t *testing.T) []runtime.Object {
	t.Helper()
	everything := &metav1.LabelSelector{}
	equivalent := admissionregistrationv1.Equivalent
	all := decodeAll(t, deploy.Manifests, "admission.yaml")
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
	attributes := admission.NewAttributesRecord(changed, old, kind, named.GetNamespace(), named.GetName(), resource, u.sub, operation, nil, false, u.by)
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

// node is a Node, pod a Pod on n1, egressNode an EgressNode; each is changed by the given functions.
func node(name string, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	return changed("v1", "Node", "", name, map[string]any{"podCIDR": "10.0.0.0/24"}, changes)
}

func pod(changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	return changed("v1", "Pod", "default", "web", map[string]any{"nodeName": "n1"}, changes)
}

func egressNode(name string, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	return changed("egret.k8s.ovn.org/v1", "EgressNode", "", name, map[string]any{}, changes)
}

func changed(version, kind, namespace, name string, spec map[string]any, changes []func(*unstructured.Unstructured)) *unstructured.Unstructured {
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

func annotated(key string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{key: "x"}) }
}

func labelled(o *unstructured.Unstructured) {
	o.SetLabels(map[string]string{"k8s.ovn.org/egress-assignable": ""})
}

func owned(o *unstructured.Unstructured) {
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "u"}})
}

func finalized(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.org/keep"}) }

func respecified(o *unstructured.Unstructured) {
	o.Object["spec"] = map[string]any{"nodeName": "n1", "unschedulable": true}
}

func TestAdmitted(t *testing.T) {
	j := newJudge(t)
	n1 := agentOf("n1")
	for name, u := range map[string]update{
		"own Node":                {n1, "nodes", "", node("n1"), node("n1", annotated("k8s.ovn.org/host-cidrs"))},
		"own Node, own prefix":    {n1, "nodes", "", node("n1"), node("n1", annotated("egret.k8s.ovn.org/x"))},
		"annotation taken away":   {n1, "nodes", "", node("n1", annotated("k8s.ovn.org/host-cidrs")), node("n1")},
		"others' are there":       {n1, "nodes", "", node("n1", annotated("example.org/x")), node("n1", annotated("example.org/x"))},
		"pod on the node":         {n1, "pods", "", pod(), pod(annotated("k8s.ovn.org/pod-networks"))},
		"EgressNode made":         {n1, "egressnodes", "", nil, egressNode("n1", owned)},
		"EgressNode changed":      {n1, "egressnodes", "", egressNode("n1"), egressNode("n1", owned)},
		"another user, any label": {&user.DefaultInfo{Name: "admin"}, "nodes", "", node("n1"), node("n1", labelled)},
		"another user, any node":  {&user.DefaultInfo{Name: "admin"}, "egressnodes", "", nil, egressNode("n2")},
	} {
		t.Run(name, func(t *testing.T) {
			if have := j.refusal(u); have != "" {
				t.Errorf("refused: %s", have)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	j := newJudge(t)
	n1 := agentOf("n1")
	unbound := &user.DefaultInfo{Name: n1.GetName()}
	const (
		annotationsOnly = "the agent of node n1 may change annotations of "
		noNode          = "this token of egret-node names no node"
	)
	host := annotated("k8s.ovn.org/host-cidrs")
	for name, c := range map[string]struct {
		update
		want string
	}{
		"Node of another":       {update{n1, "nodes", "", node("n2"), node("n2", host)}, "the agent of node n1 may write its own Node only, not n2"},
		"label":                 {update{n1, "nodes", "", node("n1"), node("n1", labelled)}, annotationsOnly + "its Node"},
		"spec":                  {update{n1, "nodes", "", node("n1"), node("n1", respecified)}, annotationsOnly + "its Node"},
		"finalizer":             {update{n1, "nodes", "", node("n1"), node("n1", finalized)}, annotationsOnly + "its Node"},
		"owner":                 {update{n1, "nodes", "", node("n1"), node("n1", owned)}, annotationsOnly + "its Node"},
		"Node deleted":          {update{n1, "nodes", "", node("n1"), nil}, annotationsOnly + "its Node"},
		"another's annotation":  {update{n1, "nodes", "", node("n1"), node("n1", annotated("example.org/x"))}, "not example.org/x"},
		"similar prefix":        {update{n1, "nodes", "", node("n1"), node("n1", annotated("not-k8s.ovn.org/x"))}, "not not-k8s.ovn.org/x"},
		"another's taken away":  {update{n1, "nodes", "", node("n1", annotated("example.org/x")), node("n1")}, "not example.org/x"},
		"own subnets":           {update{n1, "nodes", "", node("n1"), node("n1", annotated("k8s.ovn.org/node-subnets"))}, "allocated by egret-controller: the agent of node n1"},
		"allocation problem":    {update{n1, "nodes", "", node("n1"), node("n1", annotated("egret.k8s.ovn.org/allocation-problem"))}, "allocated by egret-controller"},
		"own id taken away":     {update{n1, "nodes", "", node("n1", annotated("k8s.ovn.org/node-id")), node("n1")}, "allocated by egret-controller"},
		"status of another":     {update{n1, "nodes", "status", node("n2"), node("n2", host)}, "its own Node only"},
		"Node, token unbound":   {update{unbound, "nodes", "", node("n1"), node("n1", host)}, noNode},
		"pod elsewhere":         {update{agentOf("n2"), "pods", "", pod(), pod(host)}, "the agent of node n2 may write pods of its own node only, not default/web"},
		"pod's label":           {update{n1, "pods", "", pod(), pod(labelled)}, annotationsOnly + "a pod"},
		"pod's spec":            {update{n1, "pods", "", pod(), pod(respecified)}, annotationsOnly + "a pod"},
		"pod made":              {update{n1, "pods", "", nil, pod()}, "pods of its own node only"},
		"pod's other":           {update{n1, "pods", "", pod(), pod(annotated("example.org/x"))}, "not example.org/x"},
		"pod, token unbound":    {update{unbound, "pods", "", pod(), pod(host)}, noNode},
		"EgressNode of another": {update{n1, "egressnodes", "", egressNode("n2"), egressNode("n2", owned)}, "the agent of node n1 may write the EgressNode n1 only, not n2"},
		"EgressNode made":       {update{n1, "egressnodes", "", nil, egressNode("n2")}, "EgressNode n1 only, not n2"},
		"EgressNode deleted":    {update{n1, "egressnodes", "", egressNode("n2"), nil}, "EgressNode n1 only, not n2"},
		"EgressNode, unbound":   {update{unbound, "egressnodes", "", nil, egressNode("n1")}, noNode},
	} {
		t.Run(name, func(t *testing.T) {
			if have := j.refusal(c.update); !strings.Contains(have, c.want) {
				t.Errorf("want a refusal with %q, have %q", c.want, have)
			}
		})
	}
}
