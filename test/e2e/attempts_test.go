package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// attempt is a request with stolen credentials. What is to be refused is refused in these words; want is empty where
// it is to be admitted.
type attempt struct {
	name, verb, path, body, want string
}

const (
	admitted = ""
	// byRBAC is in the words of the API server's own authorization.
	byRBAC    = "cannot "
	ofOthers  = "a kubelet may not change them"
	ovn       = "/apis/k8s.ovn.org/v1"
	egressIPs = ovn + "/egressips"
	services  = "/api/v1/namespaces/default/services/kubernetes"
	events    = "/apis/events.k8s.io/v1/namespaces/default/events"
	tokens    = "/api/v1/namespaces/egret-system/serviceaccounts/"
	leases    = "/apis/coordination.k8s.io/v1/namespaces/egret-system/leases/"
	ofAgents  = "/apis/coordination.k8s.io/v1/namespaces/egret-node-lease/leases/"
	renewal   = `{"spec":{"leaseDurationSeconds":20}}`
	networks  = `{"default":{"ip_addresses":["10.244.0.9/24"],"mac_address":"0a:58:0a:f4:00:09"}}`
)

// judge makes the attempt.
func (a attempt) judge(t *testing.T, by *caller) {
	code, said := by.dryRun(t, a.verb, a.path, a.body)
	if ok := code < 300; ok != (a.want == admitted) || !strings.Contains(said, a.want) {
		t.Errorf("%s %s: %d, want %q, have %s", a.verb, a.path, code, a.want, said)
	}
}

// objects are paths of what belongs to the node whose credentials are stolen, and to another one.
type objects struct {
	name, node, egressNode, pod                     string
	otherName, otherNode, otherEgressNode, otherPod string
	egressIP, namespace                             string
}

func objectsOf(own, other, namespace string) objects {
	const nodes, egressNodes = "/api/v1/nodes/", "/apis/egret.k8s.ovn.org/v1/egressnodes/"
	pods := "/api/v1/namespaces/" + namespace + "/pods/"
	return objects{own, nodes + own, egressNodes + own, pods + "here",
		other, nodes + other, egressNodes + other, pods + "there", egressIPs + "/" + namespace, namespace}
}

// inOwnNetwork is what an agent writes of a pod that has the network of a definition, and interfaces beside that.
func inOwnNetwork(definition string) string {
	return annotation("k8s.ovn.org/pod-networks", `{"default":{"ip_addresses":["10.244.0.9/24"],`+
		`"mac_address":"0a:58:0a:f4:00:09","ip_address":"10.244.0.9/24","role":"infrastructure-locked",`+
		`"routes":[{"dest":"10.244.0.0/16","nextHop":"10.244.0.1"}]},"`+definition+`":{"ip_addresses":["10.128.0.9/24"],`+
		`"mac_address":"0a:58:0a:80:00:09","gateway_ips":["10.128.0.1"],"ip_address":"10.128.0.9/24",`+
		`"gateway_ip":"10.128.0.1","role":"primary","network":"blue"}}`)
}

func interfaces(address string) string {
	return annotation("k8s.v1.cni.cncf.io/network-status", `[{"name":"ovn-kubernetes","interface":"eth0",`+
		`"ips":["10.244.0.9"],"mac":"0a:58:0a:f4:00:09","dns":{}},{"name":"ovn-kubernetes","interface":"ovn-udn1",`+
		`"ips":["`+address+`"],"mac":"0a:58:0a:80:00:09","default":true,"dns":{}}]`)
}

func (o objects) ofAgent() []attempt {
	return []attempt{
		{"own host-cidrs", http.MethodPatch, o.node,
			annotation("k8s.ovn.org/host-cidrs", `["172.18.0.2/16"]`), admitted},
		{"another's host-cidrs", http.MethodPatch, o.otherNode,
			annotation("k8s.ovn.org/host-cidrs", `["172.18.0.2/16"]`), "its own Node only"},
		{"own host-cidrs, garbage", http.MethodPatch, o.node,
			annotation("k8s.ovn.org/host-cidrs", `["x"]`), "another form"},
		{"another's chassis", http.MethodPatch, o.node,
			annotation("k8s.ovn.org/node-chassis-id", o.otherName), "its own name"},
		{"another's zone", http.MethodPatch, o.node,
			annotation("k8s.ovn.org/zone-name", o.otherName), "its own name"},
		{"own id", http.MethodPatch, o.node,
			annotation("k8s.ovn.org/node-id", "9"), "allocated by egret-controller"},
		{"own record", http.MethodPatch, o.node,
			annotation("egret.k8s.ovn.org/recorded-addresses", `{"addresses":["172.18.0.2"]}`), "allocated by egret-controller"},
		{"own label", http.MethodPatch, o.node, egressLabel, "annotations of its Node and nothing else"},
		{"own Node's status", http.MethodPatch, o.node + "/status", annotation("k8s.ovn.org/node-id", "9"), byRBAC},
		{"own Node deleted", http.MethodDelete, o.node, "", byRBAC},
		{"own pod", http.MethodPatch, o.pod, annotation("k8s.ovn.org/pod-networks", networks), admitted},
		{"own pod, garbage", http.MethodPatch, o.pod, annotation("k8s.ovn.org/pod-networks", "x"), "another form"},
		{"own pod's network", http.MethodPatch, o.pod, inOwnNetwork(o.namespace + "/blue"), admitted},
		{"another namespace's network", http.MethodPatch, o.pod, inOwnNetwork("x" + o.namespace + "/blue"),
			"another form"},
		{"own pod's interfaces", http.MethodPatch, o.pod, interfaces("10.128.0.9"), admitted},
		{"own pod's interfaces, garbage", http.MethodPatch, o.pod, interfaces("10.128.0.900"), "another form"},
		{"another pod's interfaces", http.MethodPatch, o.otherPod, interfaces("10.128.0.9"),
			"pods of its own node only"},
		{"another's pod", http.MethodPatch, o.otherPod,
			annotation("k8s.ovn.org/pod-networks", networks), "pods of its own node only"},
		{"own pod deleted", http.MethodDelete, o.pod, "", byRBAC},
		{"own EgressNode", http.MethodPatch, o.egressNode, `{"status":{"problems":["x"]}}`, admitted},
		{"own EgressNode, garbage", http.MethodPatch, o.egressNode,
			`{"status":{"holding":[{"egressIP":"e","ip":"x"}],"holdingCount":1}}`, "is not an IP address"},
		{"another's EgressNode", http.MethodPatch, o.otherEgressNode,
			`{"status":{"problems":["x"]}}`, "may write the EgressNode"},
		{"EgressNode put", http.MethodPut, o.egressNode, `{}`, byRBAC},
		{"EgressNode deleted", http.MethodDelete, o.egressNode, "", byRBAC},
		{"EgressIP", http.MethodPost, egressIPs, `{}`, byRBAC},
		{"EgressIP's status", http.MethodPatch, egressIPs + "/e/status", `{}`, byRBAC},
		{"EgressIP's mark", http.MethodPatch, o.egressIP, annotation("k8s.ovn.org/egressip-mark", "50001"), byRBAC},
		{"own Event", http.MethodPost, events, eventOf("egret-node", o.name), admitted},
		{"another's Event", http.MethodPost, events, eventOf("egret-node", o.otherName), "in its own name"},
		{"Secrets", http.MethodGet, "/api/v1/secrets", "", byRBAC},
		{"a token", http.MethodPost, tokens + "egret-controller/token", `{"spec":{}}`, byRBAC},
		{"EgressService's label", http.MethodPatch, o.node,
			serviceLabel, "annotations of its Node and nothing else"},
		{"own Lease", http.MethodPatch, ofAgents + o.name, renewal, admitted},
		{"own Lease deleted", http.MethodDelete, ofAgents + o.name, "", byRBAC},
		{"another's Lease", http.MethodPatch, ofAgents + o.otherName, renewal, "egret-node-lease/" + o.name + " only"},
		{"another's Lease deleted", http.MethodDelete, ofAgents + o.otherName, "", byRBAC},
		{"controllers' lease", http.MethodPatch, leases + "egret-controller", renewal, byRBAC},
	}
}

func (o objects) ofKubelet() []attempt {
	return []attempt{
		{"own id", http.MethodPatch, o.node, annotation("k8s.ovn.org/node-id", "9"), ofOthers},
		{"own id by status", http.MethodPatch, o.node + "/status",
			annotation("k8s.ovn.org/node-id", "9"), ofOthers},
		{"own subnets", http.MethodPatch, o.node,
			annotation("k8s.ovn.org/node-subnets", `{"default":["10.244.9.0/24"]}`), ofOthers},
		{"own host-cidrs", http.MethodPatch, o.node,
			annotation("k8s.ovn.org/host-cidrs", `["172.18.0.2/16"]`), ofOthers},
		{"own record", http.MethodPatch, o.node,
			annotation("egret.k8s.ovn.org/recorded-addresses", `{"addresses":["172.18.0.2"]}`), ofOthers},
		{"own chassis", http.MethodPatch, o.node, annotation("k8s.ovn.org/node-chassis-id", o.otherName), ofOthers},
		{"own label", http.MethodPatch, o.node, egressLabel, "whether its node hosts egress IPs"},
		{"own label by status", http.MethodPatch, o.node + "/status",
			egressLabel, "whether its node hosts egress IPs"},
		// By the first people do not select nodes that stolen credentials are kept from; by the second they can.
		{"own name for selectors", http.MethodPatch, o.node,
			labelled("kubernetes.io/hostname", o.otherName), admitted},
		{"a label that is kept from it", http.MethodPatch, o.node,
			labelled("node-restriction.kubernetes.io/egress", "x"), "is not allowed to modify labels"},
		{"own Node, another's", http.MethodPatch, o.node, annotation("example.org/x", "x"), admitted},
		{"another's Node", http.MethodPatch, o.otherNode,
			annotation("example.org/x", "x"), "not allowed to modify node"},
		{"own Node's status", http.MethodPatch, o.node + "/status", `{"status":{"volumesInUse":[]}}`, admitted},
		{"own Node deleted", http.MethodDelete, o.node, "", byRBAC},
		{"pod's addresses by status", http.MethodPatch, o.pod + "/status",
			annotation("k8s.ovn.org/pod-networks", networks), ofOthers},
		{"pod's status", http.MethodPatch, o.pod + "/status", `{"status":{"message":"x"}}`, admitted},
		{"another's pod", http.MethodPatch, o.otherPod + "/status",
			`{"status":{"message":"x"}}`, "can only update pod status for pods with spec.nodeName set to itself"},
		{"own EgressNode", http.MethodPatch, o.egressNode, `{"status":{"problems":["x"]}}`, byRBAC},
		{"the agent's token", http.MethodPost, tokens + "egret-node/token", `{"spec":{}}`, "forbidden"},
		{"EgressService's label", http.MethodPatch, o.node, serviceLabel, "a kubelet may not change them"},
		{"its agent's Lease", http.MethodPatch, ofAgents + o.name, renewal, "forbidden"},
	}
}

func (o objects) ofController() []attempt {
	return []attempt{
		{"an id", http.MethodPatch, o.otherNode, annotation("k8s.ovn.org/node-id", "9"), admitted},
		{"an id, garbage", http.MethodPatch, o.otherNode, annotation("k8s.ovn.org/node-id", "x"), "decimal number"},
		{"a record", http.MethodPatch, o.otherNode,
			annotation("egret.k8s.ovn.org/recorded-addresses", `{"addresses":["172.18.0.99"]}`), admitted},
		{"a record, garbage", http.MethodPatch, o.otherNode,
			annotation("egret.k8s.ovn.org/recorded-addresses", `{"addresses":["x"]}`), "another form"},
		{"host-cidrs", http.MethodPatch, o.otherNode,
			annotation("k8s.ovn.org/host-cidrs", `["172.18.0.2/16"]`), "allocates only"},
		{"label", http.MethodPatch, o.otherNode,
			egressLabel, "may change labels egress-service.k8s.ovn.org/* only"},
		{"EgressService's label, with a value", http.MethodPatch, o.otherNode,
			serviceLabel, "may change labels egress-service.k8s.ovn.org/* only"},
		{"pod", http.MethodPatch, o.pod, annotation("k8s.ovn.org/pod-networks", networks), byRBAC},
		{"Service's condition", http.MethodPatch, services + "/status",
			`{"status":{"conditions":[{"type":"x","status":"True","reason":"x","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "nothing else of it"},
		{"Service", http.MethodPatch, services, `{"spec":{"externalIPs":["172.18.0.9"]}}`, byRBAC},
		{"EgressIP's spec", http.MethodPatch, o.egressIP,
			`{"spec":{"egressIPs":["172.18.0.99"]}}`, "nothing else of it"},
		{"EgressIP's annotation", http.MethodPatch, o.egressIP, annotation("example.org/x", "x"), "nothing else of it"},
		{"EgressIP's mark", http.MethodPatch, o.egressIP, annotation("k8s.ovn.org/egressip-mark", "50001"), admitted},
		{"EgressIP's mark, garbage", http.MethodPatch, o.egressIP,
			annotation("k8s.ovn.org/egressip-mark", "7"), "a number from 50000 to 55000"},
		{"EgressIP deleted", http.MethodDelete, o.egressIP, "", byRBAC},
		{"EgressNode deleted", http.MethodDelete, o.otherEgressNode, "", byRBAC},
		{"another's lease", http.MethodGet, leases + "x", "", byRBAC},
		{"its lease", http.MethodGet, leases + "egret-controller", "", admitted},
		{"agents' Leases", http.MethodGet, strings.TrimSuffix(ofAgents, "/"), "", admitted},
		{"an agent's Lease", http.MethodPatch, ofAgents + o.name, renewal, byRBAC},
		{"Event of a kubelet", http.MethodPost, events, eventOf("kubelet", o.name), "in its own name"},
		{"Event of its own", http.MethodPost, events, eventOf("egret-controller", o.name), admitted},
		{"Node's status", http.MethodPatch, o.otherNode + "/status", egressLabel, byRBAC},
		{"EgressIP's status, wrong", http.MethodPut, egressIPs + "/e/status", `{}`, byRBAC},
	}
}

// ofTenant has somebody who may write what lies in one namespace.
func ofTenant(namespace string, o objects) []attempt {
	const agents = "is not allowed to set the following annotations"
	in := func(group, kind, body string) attempt {
		return attempt{kind, http.MethodPost, group + "/namespaces/" + namespace + "/" + kind, body, admitted}
	}
	refused := func(name string, a attempt, want string) attempt {
		a.name, a.want = name, want
		return a
	}
	podOf := func(meta string) attempt {
		return in("/api/v1", "pods", `{"metadata":{`+meta+`},"spec":{"containers":[{"name":"c","image":"x"}]}}`)
	}
	theirs := fmt.Sprintf(`"annotations":{"k8s.ovn.org/pod-networks":%q}`, networks)
	return []attempt{
		{"own pod's addresses", http.MethodPatch, o.pod, annotation("k8s.ovn.org/pod-networks", networks), agents},
		{"own pod's addresses by status", http.MethodPatch, o.pod + "/status",
			annotation("k8s.ovn.org/pod-networks", networks), byRBAC},
		refused("a pod with addresses", podOf(`"name":"x",`+theirs), agents),
		refused("a pod with addresses and no name", podOf(`"generateName":"x-",`+theirs), agents),
		refused("a pod", podOf(`"name":"x"`), admitted),
		{"another annotation", http.MethodPatch, o.pod, annotation("example.org/x", "x"), admitted},
		egressServiceBy("an EgressService", namespace, `{}`, byRBAC),
		{"a Service's ingress", http.MethodPatch, "/api/v1/namespaces/" + namespace + "/services/web/status",
			`{"status":{"loadBalancer":{"ingress":[{"ip":"172.18.0.2"}]}}}`, byRBAC},
		{"an EgressIP", http.MethodPost, egressIPs, `{}`, byRBAC},
		{"an EgressIP's status", http.MethodPatch, egressIPs + "/e/status", `{}`, byRBAC},
		{"an EgressIPTraffic", http.MethodPost, ovn + "/egressiptraffics", `{}`, byRBAC},
		{"an EgressNode", http.MethodPatch, o.egressNode, `{"status":{"problems":["x"]}}`, byRBAC},
		{"a Node's label", http.MethodPatch, o.node, egressLabel, byRBAC},
		{"its namespace's labels", http.MethodPatch, "/api/v1/namespaces/" + namespace,
			labelled("env", "prod"), byRBAC},
		{"an agent's Lease", http.MethodPatch, ofAgents + o.name, renewal, byRBAC},
		{"an agent's Lease deleted", http.MethodDelete, ofAgents + o.name, "", byRBAC},
		{"the agent's token", http.MethodPost, tokens + "egret-node/token", `{"spec":{}}`, byRBAC},
	}
}

// ofTenantWithEgressServices has somebody who may write those of one namespace.
func ofTenantWithEgressServices(namespace string) []attempt {
	return []attempt{
		egressServiceBy("an EgressService", namespace, `{}`, admitted),
		egressServiceBy("an EgressService, wrong", namespace, `{"sourceIPBy":"x"}`, "Unsupported value"),
		egressServiceBy("an EgressService of another namespace", "default", `{}`, byRBAC),
		{"an EgressService's status", http.MethodPatch, ovn + "/namespaces/" + namespace + "/egressservices/web/status",
			`{"status":{"host":"ALL"}}`, byRBAC},
	}
}

func egressServiceBy(name, namespace, spec, want string) attempt {
	return attempt{name, http.MethodPost, ovn + "/namespaces/" + namespace + "/egressservices",
		`{"apiVersion":"k8s.ovn.org/v1","kind":"EgressService","metadata":{"name":"web"},"spec":` + spec + `}`, want}
}
