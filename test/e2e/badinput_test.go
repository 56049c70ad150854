package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/plan"
)

// TestBadInput gives the cluster one bad thing after the other, and looks each time that another EgressIP goes on
// working.
func TestBadInput(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1])
	n.runs(pod{name: "good", node: c.nodes[0], labels: web}, pod{name: "other", node: c.nodes[1],
		labels: map[string]string{"app": "other"}})
	good := c.egressIP(t, "good", c.number(60), n.itself(), selects(web))
	good.ready()
	parts := []part{
		{"Rejected", rejected}, {"Refused", refused}, {"ClaimedTwice", claimedTwice}, {"NodeWithoutAnnotations",
			nodeWithoutAnnotations},
		{"GarbageAnnotation", garbageAnnotation}, {"PodWithoutIP", podWithoutIP}, {"BadCNIConfig", badCNIConfig},
		{"TrafficKey", trafficKey}, {"Mark", mark},
	}
	for _, p := range parts {
		n.each(p, part{p.name + "OthersWork", func(_ *testing.T, n *namespace) {
			n.from("good").to(c.outside(0)).arrivesAs(c.number(60)...)
		}})
	}
	good.ready()
}

// rejected: the API server says no.
func rejected(t *testing.T, n *namespace) {
	for name, object := range map[string]struct{ spec, says string }{
		"not-an-ip":   {`{"egressIPs":["web"],"namespaceSelector":{}}`, "is not an IP address"},
		"prefix":      {`{"egressIPs":["172.18.0.33/24"],"namespaceSelector":{}}`, "is not an IP address"},
		"repeated":    {`{"egressIPs":["172.18.0.33","172.18.0.33"],"namespaceSelector":{}}`, "more than once"},
		"loopback":    {`{"egressIPs":["127.0.0.1"],"namespaceSelector":{}}`, "cannot be a source outside the node"},
		"none":        {`{"egressIPs":[],"namespaceSelector":{}}`, "at least 1"},
		"no-selector": {`{"egressIPs":["172.18.0.33"]}`, "namespaceSelector"},
		"operator":    {`{"egressIPs":["172.18.0.33"],"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"Is"}]}}`, "unknown operator"},
	} {
		body := fmt.Sprintf(`{"apiVersion":"k8s.ovn.org/v1","kind":"EgressIP","metadata":{"name":%q},"spec":%s}`, name,
			object.spec)
		err := n.c.kube.EgressIP.Post().Resource("egressips").Body([]byte(body)).Do(t.Context()).Error()
		if err == nil {
			egressIP{t, n.c, name}.delete()
		}
		if err == nil || !strings.Contains(err.Error(), object.says) {
			t.Errorf("EgressIP %s: %v, want a refusal that says %q", name, err, object.says)
		}
	}
}

// refused: the controller alone can see that an address is somebody else's.
func refused(t *testing.T, n *namespace) {
	c := n.c
	service := parseAll(c.service(t, "default", "kubernetes").Spec.ClusterIPs)
	for name, r := range map[string]struct {
		ip             netip.Addr
		reason, event  string
		says, alsoSays string
	}{
		"node": {c.nodes[2].IPs[0], v1.ReasonEgressIPConflict, v1.EventEgressIPConflict, "an address of node " +
			c.nodes[2].Name, "use a free address"},
		"pod": {n.ips["other"][0], v1.ReasonEgressIPConflict, v1.EventEgressIPConflict, "pod",
			"use a free address"},
		"service": {service[0], v1.ReasonEgressIPConflict, v1.EventEgressIPConflict, "ervice", "use a free address"},
		"machine of the API server": {c.number(250)[0], v1.ReasonEgressIPConflict, v1.EventEgressIPConflict,
			"the API server's", "use a free address"},
		"gateway": {c.number(1)[0], v1.ReasonEgressIPConflict, v1.EventEgressIPConflict, "the gateway of node",
			"use a free address"},
		"nowhere": {netip.MustParseAddr("203.0.113.7"), v1.ReasonNoNodeInNetwork, v1.EventNoMatchingNodeFound,
			"in no egress node's network", "label a node"},
	} {
		object := "refused-" + strings.ReplaceAll(strings.ToLower(name), " ", "-")
		e := c.egressIP(t, object, []netip.Addr{r.ip}, n.itself(), selects(map[string]string{"app": "other"}))
		o := e.until(v1.ConditionReady, metav1.ConditionFalse, r.reason)
		message := meta.FindStatusCondition(o.Status.Conditions, v1.ConditionReady).Message
		if !strings.Contains(message, r.says) || !strings.Contains(message, r.alsoSays) {
			t.Errorf("EgressIP with the address of a %s: condition says %q, want %q and %q", name, message, r.says,
				r.alsoSays)
		}
		e.tells(r.event, r.says)
	}
	n.from("other").to(c.outside(0)).arrivesAs(c.nodes[1].IPs...)
}

// claimedTwice: the older object keeps the address, the younger is told so.
func claimedTwice(_ *testing.T, n *namespace) {
	younger := n.c.egressIP(n.t, "younger", n.c.number(60)[:1], n.itself(), selects(map[string]string{"app": "other"}))
	younger.until(v1.ConditionReady, metav1.ConditionFalse, v1.ReasonEgressIPConflict)
	younger.tells(v1.EventUnsupportedRequest, "belongs to the older EgressIP good")
	n.from("other").to(n.c.outside(0)).arrivesAs(n.c.nodes[1].IPs...)
}

// nodeWithoutAnnotations: an egress node that has no agent gets no address, and the EgressIP says that no node can host
// it.
func nodeWithoutAnnotations(t *testing.T, n *namespace) {
	c := n.c
	bare := c.fakeNode(t)
	c.patchNode(t, bare, `{"metadata":{"labels":{"k8s.ovn.org/egress-assignable":""}}}`)
	ips := concat(c.number(61)[:1], c.number(62)[:1])
	e := c.egressIP(t, "bare-node", ips, n.itself(), selects(map[string]string{"app": "other"}))
	o := e.until(v1.ConditionReady, metav1.ConditionFalse, v1.ReasonPartiallyAssigned)
	where := nodesOf(o)
	if len(where) != 1 || !slices.Contains(slices.Collect(maps.Values(where)), c.nodes[1].Name) {
		t.Errorf("addresses on %v, want one on %s", where, c.nodes[1].Name)
	}
	said := meta.FindStatusCondition(o.Status.Conditions, v1.ConditionReady).Message
	for _, ip := range ips {
		if _, hosted := where[ip.String()]; !hosted && !strings.Contains(said, "no node can host "+ip.String()) {
			t.Errorf("condition says %q, want that no node can host %s", said, ip)
		}
	}
}

// garbageAnnotation: what the controller allocated is put right; the pods of the node go on, and others reach them.
func garbageAnnotation(t *testing.T, n *namespace) {
	c, node := n.c, n.c.nodes[2].Name
	n.runs(pod{name: "on-garbage", node: n.c.nodes[2]})
	want := kube.Node(c.node(t, node)).Subnets
	for _, key := range []string{v1.AnnotationNodeID, v1.AnnotationNodeSubnets} {
		c.garbles(t, node, key)
		n.from("on-garbage").to(c.outside(0)).arrivesAs(c.nodes[2].IPs...)
		n.from("good").to(n.pod("on-garbage")).arrivesAs(n.ips["good"]...)
	}
	n.runs(pod{name: "after-garbage", node: c.nodes[2]})
	for _, ip := range n.ips["after-garbage"] {
		if !slices.ContainsFunc(want, func(s netip.Prefix) bool { return s.Contains(ip) }) {
			t.Errorf("a pod that starts afterwards has %s, want an address in %v", ip, want)
		}
	}
}

// trafficKey: a selector of traffic with a key that is none, which the API server lets pass. The networks of the former
// one count on, and the conditions and an Event name the field.
func trafficKey(t *testing.T, n *namespace) {
	b, c := byDestination{t, n.c, n}, n.c
	b.traffic(n.name+"-key", n.name+"-key", b.networks(health)...)
	former := selects(map[string]string{"for": n.name + "-key"})
	e := c.egressIPOf(t, "traffic-key", v1.EgressIPSpec{EgressIPs: texts(c.number(63)), NamespaceSelector: n.itself(),
		PodSelector: selects(map[string]string{"app": "other"}), TrafficSelector: &former})
	e.readyOn(c.nodes[1])
	n.from("other").to(b.outside(health)).formerly(c.nodes[1].IPs...).soonArrivesAs(c.number(63)...)
	must(t, e.patch(`{"spec":{"trafficSelector":{"matchLabels":{"for":null,"a b/c/d":"key"}}}}`))
	e.until(v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInvalidSelector)
	o := e.until(v1.ConditionTrafficSelected, metav1.ConditionFalse, v1.ReasonInvalidSelector)
	e.tells(v1.ReasonInvalidSelector, "spec.trafficSelector")
	if where := nodesOf(o); len(where) != len(c.number(63)) || !meta.IsStatusConditionTrue(o.Status.Conditions,
		v1.ConditionInForce) {
		t.Errorf("addresses on %v, conditions %+v", where, o.Status.Conditions)
	}
	n.from("other").to(b.outside(health)).arrivesAs(c.number(63)...)
	n.from("other").to(b.outside(work)).arrivesAs(c.nodes[1].IPs...)
}

// podWithoutIP: a pod that waits for a node without a kubelet has no address. It is no reason for the EgressIP that
// selects it not to be ready, and nobody says that it is served.
func podWithoutIP(t *testing.T, n *namespace) {
	o := n.object(pod{name: "no-ip", labels: web})
	o.Spec.NodeName = n.c.fakeNode(t)
	if _, err := n.c.api.CoreV1().Pods(n.name).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.c.api.CoreV1().Pods(n.name).Delete(context.Background(), o.Name,
			metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	good := egressIP{t, n.c, "good"}
	sets := n.c.selected(t, good)
	n.runs(pod{name: "after-no-ip", node: n.c.nodes[0], labels: web}) // what was created before it is known by then
	n.from("after-no-ip").to(n.c.outside(0)).arrivesAs(n.c.number(60)...)
	good.ready()
	if now, want := n.c.selected(t, good),
		slices.Sorted(slices.Values(append(sets, texts(n.ips["after-no-ip"])...))); !slices.Equal(now, want) {
		t.Errorf("the holder translates for %v, want %v", now, want)
	}
}

// selected are the pods' addresses that the second node, which holds it, translates for an EgressIP, in order.
func (c *cluster) selected(t *testing.T, e egressIP) []string {
	t.Helper()
	var out []string
	for _, family := range []string{"v4", "v6"} {
		set := plan.SetName("egressip/" + e.name + "/pods." + family)
		out = append(out, strings.Fields(c.on(t, c.nodes[1].Name, "ovn-nbctl", "--bare", "--columns=addresses", "find",
			"Address_Set", "name="+set))...)
	}
	slices.Sort(out)
	return out
}

// badCNIConfig calls the plugin on a node as a container runtime does.
func badCNIConfig(t *testing.T, n *namespace) {
	for config, says := range map[string]string{
		`{"cniVersion":"1.0.0","name":"egret","type":"egret-cni","socket":5}`:                       "socket",
		`{"cniVersion":"1.0.0","name":"egret","type":"egret-cni","socket":"relative"}`:              "socket",
		`{"cniVersion":"1.0.0","name":"egret","type":"egret-cni","ipam":{"type":"host-local"}}`:     "ipam",
		`{"cniVersion":"9.9.9","name":"egret","type":"egret-cni"}`:                                  "incompatible CNI versions",
		`{"cniVersion":"1.0.0","name":"egret","type":"egret-cni","socket":"/run/nowhere/cni.sock"}`: "egret-node",
	} {
		out, err := n.c.feed(t.Context(), n.c.nodes[0].Name, []byte(config), "env", "CNI_COMMAND=ADD",
			"CNI_CONTAINERID=e2e", "CNI_IFNAME=eth0",
			"CNI_NETNS=/run/netns/none", "CNI_PATH=/opt/cni/bin",
			"CNI_ARGS=K8S_POD_NAMESPACE=default;K8S_POD_NAME=none", "/opt/cni/bin/egret-cni")
		var answer struct {
			Code uint   `json:"code"`
			Msg  string `json:"msg"`
		}
		if err == nil || json.Unmarshal([]byte(out), &answer) != nil || answer.Code == 0 ||
			!strings.Contains(out, says) {
			t.Errorf("ADD with %s: %v, answer %s; want a CNI error with %q", config, err, out, says)
		}
	}
}

// mark: an EgressIP's mark is the controller's alone, whoever asks for another.
func mark(t *testing.T, n *namespace) {
	const (
		annotations = `{"metadata":{"name":"marked","annotations":{"k8s.ovn.org/egressip-mark":"50000"}}`
		body        = `,"apiVersion":"k8s.ovn.org/v1","kind":"EgressIP","spec":{"egressIPs":["172.18.0.34"],"namespaceSelector":{}}}`
	)
	err := n.c.kube.EgressIP.Post().Resource("egressips").Body([]byte(annotations + body)).Do(t.Context()).Error()
	if err == nil {
		egressIP{t, n.c, "marked"}.delete()
	}
	if err == nil || !strings.Contains(err.Error(), `EgressIP resources cannot be created with the "k8s.ovn.org/`) {
		t.Errorf("an EgressIP with a mark: %v, want a refusal", err)
	}
	err = egressIP{t, n.c, "good"}.patch(`{"metadata":{"annotations":{"k8s.ovn.org/egressip-mark":"50000"}}}`)
	if err == nil || !strings.Contains(err.Error(), "annotation cannot be modified or removed once set") {
		t.Errorf("a mark is added: %v, want a refusal", err)
	}
}
