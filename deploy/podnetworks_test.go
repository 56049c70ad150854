package deploy_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/ref"
)

// ownNetworks is the annotation of a pod that has the network of a definition, as the agent encodes it.
func ownNetworks(t *testing.T, definition string, families int) string {
	t.Helper()
	locked := cniserver.PodNetwork{MAC: "0a:58:0a:f4:01:05", Role: "infrastructure-locked"}
	locked.Routes = []cniserver.PodRoute{{To: "10.244.0.0/16", Via: "10.244.1.1"},
		{To: "fd00:10:244::/48", Via: "fd00:10:244:1::1"}, {To: "100.64.0.0/16", Via: "10.244.1.1"},
		{To: "fd98::/64", Via: "fd00:10:244:1::1"}}
	own := cniserver.PodNetwork{MAC: "0a:58:0a:80:01:05", Role: "primary", Network: "cluster_udn_blue"}
	locked.IPs = []string{"10.244.1.5/24", "fd00:10:244:1::5/64"}[:families]
	own.IPs = []string{"10.128.1.5/24", "fd00:128:0:1::5/64"}[:families]
	own.Gateways = []string{"10.128.1.1", "fd00:128:0:1::1"}[:families]
	if families == 1 {
		locked.IPAddress, own.IPAddress, own.Gateway = locked.IPs[0], own.IPs[0], own.Gateways[0]
	}
	text, err := json.Marshal(cniserver.PodNetworks{ref.DefaultNetwork: locked, definition: own})
	must(t, err)
	return string(text)
}

func inNamespace(namespace string) change {
	return func(o *unstructured.Unstructured) { o.SetNamespace(namespace) }
}

// TestAgentsWriteOwnNetworks: a pod of a namespace with its own network has two entries, in the order of their keys. A
// definition, or a network, may have a name that looks like a prefix.
func TestAgentsWriteOwnNetworks(t *testing.T) {
	j := newJudge(t)
	for _, namespace := range []string{"default", "abc"} {
		for _, name := range []string{"/blue", "/a.b-c", "/1"} {
			for families := 1; families <= 2; families++ {
				text := ownNetworks(t, namespace+name, families)
				for _, text := range []string{text, strings.Replace(text, "cluster_udn_blue", "fd00/1", 1)} {
					set := annotated(v1.AnnotationPodNetworks, text)
					in := inNamespace(namespace)
					if have := j.refusal(update{agentOf("n1"), "pods", "", pod(in), pod(in, set)}); have != "" {
						t.Errorf("%s: refused: %s", text, have)
					}
				}
			}
		}
	}
}

// TestOwnNetworksAreRefused: what an agent writes of a pod of a namespace with its own network is of that pod's
// namespace alone, and no more than the agent writes.
func TestOwnNetworksAreRefused(t *testing.T) {
	n1, good := agentOf("n1"), ownNetworks(t, "default/blue", 2)
	var entries map[string]json.RawMessage
	must(t, json.Unmarshal([]byte(good), &entries))
	own, locked := `"default/blue":`+string(entries["default/blue"]), `"default":`+string(entries["default"])
	set := func(text string) update { return onPod(n1, annotated(v1.AnnotationPodNetworks, text)) }
	with := func(old, new string) refused {
		if !strings.Contains(good, old) {
			t.Fatalf("%s does not have %s", good, old)
		}
		return refused{set(strings.Replace(good, old, new, 1)), "pod-networks"}
	}
	route := `{"dest":"10.0.0.0/8","nextHop":"10.244.1.1"},`
	newJudge(t).refusesAll(t, map[string]refused{
		"another namespace's": {set(ownNetworks(t, "shop/blue", 2)), "pod-networks"},
		"a similar namespace": {set(ownNetworks(t, "defaults/blue", 2)), "pod-networks"},
		"no namespace":        {set(ownNetworks(t, "blue", 2)), "pod-networks"},
		"two of the namespace": {set("{" + locked + "," + own + "," + strings.Replace(own, "/blue", "/red", 1) + "}"),
			"pod-networks"},
		"one entry twice":      {set("{" + locked + "," + own + "," + own + "}"), "pod-networks"},
		"the default's twice":  {set("{" + locked + "," + locked + "," + own + "}"), "pod-networks"},
		"its own alone":        {set("{" + own + "}"), "pod-networks"},
		"locked alone":         {set("{" + locked + "}"), "pod-networks"},
		"both primary":         with(`"role":"infrastructure-locked"`, `"role":"primary"`),
		"both locked":          with(`"role":"primary"`, `"role":"infrastructure-locked"`),
		"default's gateway":    with(`f4:01:05"`, `f4:01:05","gateway_ips":["10.244.1.1"]`),
		"default's network":    with(`"cluster_udn_blue"`, `"default"`),
		"no network":           with(`,"network":"cluster_udn_blue"`, ``),
		"network's form":       with(`"cluster_udn_blue"`, `"cluster_udn_blue\n"`),
		"address out of range": with("10.128.1.5/24", "10.128.1.500/24"),
		"second is none":       with("fd00:128:0:1::5/64", "fd00:128:0:1::5/129"),
		"its only one is none": {set(strings.ReplaceAll(ownNetworks(t, "default/blue", 1), "10.128.1.5/24",
			"10.128.1.5/33")), "pod-networks"},
		"destination is none": with("10.244.0.0/16", "10.244.0.0/99"),
		"third address":       with(`["10.128.1.5/24"`, `["10.128.1.5/24","10.128.1.6/24"`),
		"group's MAC":         with("0a:58:0a:80:01:05", "0b:58:0a:80:01:05"),
		"something more":      with(`"role":"primary"`, `"tunnel_id":5,"role":"primary"`),
		"too many routes":     with(`"routes":[`, `"routes":[`+strings.Repeat(route, 100)),
		"a line more":         {set(good + "\n"), "pod-networks"},
		"pod elsewhere": {onPod(agentOf("n2"), annotated(v1.AnnotationPodNetworks, good)),
			"pods of its own node only"},
		"pod of no node": {update{n1, "pods", "", pod(unscheduled), pod(unscheduled,
			annotated(v1.AnnotationPodNetworks, good))}, "pods of its own node only"},
		"definition by a kubelet": {onPod(kubeletOf("n1"), annotated(v1.AnnotationPodNetworks, good)),
			"a kubelet may not change them"},
		"pod's other annotation": {onPod(n1, func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{v1.AnnotationPodNetworks: good, "k8s.v1.cni.cncf.io/networks": "red"})
		}), "k8s.v1.cni.cncf.io/network-status of a pod only, not "},
	})
}

// networkStatus is what the agent writes beside ownNetworks.
func networkStatus(t *testing.T, families int) string {
	t.Helper()
	p := cniserver.PodPort{IfName: "eth0", MAC: "0a:58:0a:f4:01:05", Primary: &cniserver.PrimaryPort{}}
	p.IPs = []netip.Addr{netip.MustParseAddr("10.244.1.5"), netip.MustParseAddr("fd00:10:244:1::5")}[:families]
	p.Primary.MAC = "0a:58:0a:80:01:05"
	p.Primary.IPs = []netip.Addr{netip.MustParseAddr("10.128.1.5"), netip.MustParseAddr("fd00:128:0:1::5")}[:families]
	text, err := json.Marshal(p.NetworkStatus())
	must(t, err)
	return string(text)
}

// TestNetworkStatus: an agent writes which interfaces a pod of its node has, in the one form that it writes, and takes
// that away. Others write the annotation as ever: of most pods it is Multus'.
func TestNetworkStatus(t *testing.T) {
	j, n1, good := newJudge(t), agentOf("n1"), networkStatus(t, 2)
	set := func(text string) change { return annotated(v1.AnnotationNetworkStatus, text) }
	both := func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{v1.AnnotationPodNetworks: ownNetworks(t, "default/blue", 2),
			v1.AnnotationNetworkStatus: good})
	}
	multus := `[{"name":"net1","interface":"net1","dns":{}}]`
	for name, u := range map[string]update{
		"dual-stack":         onPod(n1, set(good)),
		"single-stack":       onPod(n1, set(networkStatus(t, 1))),
		"with its addresses": onPod(n1, both),
		"taken away":         {n1, "pods", "", pod(both), pod()},
		"of Multus":          {&user.DefaultInfo{Name: "multus"}, "pods", "status", pod(), pod(set(multus))},
		"Multus' stays":      {n1, "pods", "", pod(set(multus)), pod(set(multus))},
	} {
		if have := j.refusal(u); have != "" {
			t.Errorf("%s: refused: %s", name, have)
		}
	}
	with := func(old, new string) refused {
		if !strings.Contains(good, old) {
			t.Fatalf("%s does not have %s", good, old)
		}
		return refused{onPod(n1, set(strings.Replace(good, old, new, 1))), "network-status has another form"}
	}
	j.refusesAll(t, map[string]refused{
		"pod elsewhere":    {onPod(agentOf("n2"), set(good)), "pods of its own node only"},
		"Multus' form":     {onPod(n1, set(multus)), "network-status has another form"},
		"another network":  with(`"ovn-kubernetes","interface":"ovn-udn1"`, `"default/red","interface":"ovn-udn1"`),
		"interface":        with(`"ovn-udn1"`, `"net1"`),
		"first's name":     with(`"eth0"`, `"eth0/"`),
		"both default":     with(`"mac":"0a:58:0a:f4:01:05"`, `"mac":"0a:58:0a:f4:01:05","default":true`),
		"group's MAC":      with("0a:58:0a:80:01:05", "0b:58:0a:80:01:05"),
		"third address":    with(`"10.128.1.5"`, `"10.128.1.5","10.128.1.6"`),
		"no address":       with(`"10.128.1.5"`, `"10.128.1.500"`),
		"something more":   with(`"dns":{}`, `"dns":{},"gateway":["10.244.1.1"]`),
		"servers of names": with(`"dns":{}`, `"dns":{"nameservers":["10.244.1.9"]}`),
		"one more": with(`}]`, `},{"name":"ovn-kubernetes","interface":"net1","ips":["10.0.0.1"],`+
			`"mac":"0a:58:0a:80:01:05","dns":{}}]`),
		"a line more": {onPod(n1, set(good+"\n")), "network-status has another form"},
	})
}

func unscheduled(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{} }
