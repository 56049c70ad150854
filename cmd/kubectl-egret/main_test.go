package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// server is an API server with objects by the last part of their path; every other list is empty.
func server(t *testing.T, objects map[string]string) (kubeconfig string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		what := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		switch body, is := objects[what]; {
		case is && body == "":
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden",`+
				`"message":"`+what+` are forbidden"}`, http.StatusForbidden)
		case is:
			fmt.Fprint(w, body)
		case what == configName:
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound"}`,
				http.StatusNotFound)
		default:
			fmt.Fprint(w, list(what, ""))
		}
	}))
	t.Cleanup(s.Close)
	kubeconfig = filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"c","cluster":{"server":%q}}],
		"contexts":[{"name":"c","context":{"cluster":"c","namespace":"shop"}}]}`, s.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// list is a list of a resource, of a version that the client takes for the resource's own.
func list(resource, items string) string {
	kinds := map[string][2]string{
		"nodes": {"v1", "NodeList"}, "namespaces": {"v1", "NamespaceList"}, "pods": {"v1", "PodList"},
		"services": {"v1", "ServiceList"}, "endpointslices": {"discovery.k8s.io/v1", "EndpointSliceList"},
		"egressips":                      {"k8s.ovn.org/v1", "EgressIPList"},
		"egressiptraffics":               {"k8s.ovn.org/v1", "EgressIPTrafficList"},
		"egressservices":                 {"k8s.ovn.org/v1", "EgressServiceList"},
		"egressnodes":                    {"egret.k8s.ovn.org/v1", "EgressNodeList"},
		"network-attachment-definitions": {"k8s.cni.cncf.io/v1", "NetworkAttachmentDefinitionList"},
	}
	return fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"7"},"items":[%s]}`,
		kinds[resource][1], kinds[resource][0], items)
}

func asked(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	t.Setenv("KUBECONFIG", kubeconfig)
	return ran(t, append([]string{"explain"}, args...)...)
}

const (
	node = `{"metadata":{"name":"n1","annotations":{"k8s.ovn.org/node-id":"2",
		"k8s.ovn.org/node-subnets":"{\"default\":[\"10.245.1.0/24\"]}","k8s.ovn.org/node-chassis-id":"n1",
		"k8s.ovn.org/node-primary-ifaddr":"{\"ipv4\":\"172.18.0.2/16\"}",
		"k8s.ovn.org/host-cidrs":"[\"172.18.0.2/16\"]","k8s.ovn.org/l3-gateway-config":
		"{\"default\":{\"mac-address\":\"02:00:00:00:00:01\",\"next-hops\":[\"172.18.0.1\"]}}"}},
		"status":{"conditions":[{"type":"Ready","status":"True"}]}}`
	pod = `{"metadata":{"namespace":"shop","name":"web","uid":"u"},"spec":{"nodeName":"n1"},
		"status":{"podIPs":[{"ip":"10.245.1.10"}]}}`
	configMap = `{"kind":"ConfigMap","apiVersion":"v1","data":{"CLUSTER_SUBNETS":"10.245.0.0/16/24",
		"GATEWAY_MODE":"shared","REACHABILITY_TIMEOUT":"1"}}`
)

// TestExplain: what agents are told is read from their ConfigMap, the pod is of the context's namespace, and flags beat
// both.
func TestExplain(t *testing.T) {
	config := server(t, map[string]string{"nodes": list("nodes", node), "pods": list("pods", pod), "egret": configMap})
	for _, args := range [][]string{{"web", "203.0.113.7"}, {"shop/web", "203.0.113.7", "--protocol=udp"},
		{"web", "203.0.113.7", "-n", "shop"}, {"10.245.1.10", "203.0.113.7"}} {
		if have := asked(t, config, args...); !strings.Contains(have, "\noutside by n1 as 172.18.0.2\n") {
			t.Errorf("%v:\n%s", args, have)
		}
	}
	for want, args := range map[string][]string{
		"no pod other/web is known": {"web", "203.0.113.7", "-n", "other"},
		"no pod has address":        {"10.245.1.11", "203.0.113.7"},
		"no packet of it pass":      {"web", "203.0.113.7", "--cluster-subnets", "10.244.0.0/16/24"},
		"gateway mode":              {"web", "203.0.113.7", "--gateway-mode", "both"},
		"is no IP address":          {"web", "example.org"},
		"give one of tcp":           {"web", "203.0.113.7", "--protocol", "gre"},
		"accepts 2 arg(s)":          {"web"},
		"no address of the family":  {"web", "2001:db8::1"},
		"unknown flag":              {"--nothing"},
	} {
		if have := asked(t, config, args...); !strings.Contains(have, want) {
			t.Errorf("%v: want %q in\n%s", args, want, have)
		}
	}
}

// TestForbidden: what may not be read is named.
func TestForbidden(t *testing.T) {
	for resource, want := range map[string]string{
		"nodes": "list nodes, which this needs to be allowed to in all namespaces",
		"egret": "read ConfigMap egret-system/egret",
	} {
		have := asked(t, server(t, map[string]string{resource: ""}), "web", "203.0.113.7")
		if !strings.Contains(have, want) {
			t.Errorf("want %q, have %s", want, have)
		}
	}
}

func TestUsage(t *testing.T) {
	if have := ran(t); !strings.Contains(have, "kubectl egret [command]") || !strings.Contains(have, "  explain ") {
		t.Error(have)
	}
	if have := ran(t, "shout"); !strings.Contains(have, `unknown command "shout" for "kubectl egret"`) {
		t.Error(have)
	}
}

func ran(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	c := pluginCommand()
	c.SetArgs(args)
	c.SetOut(&out)
	if err := c.ExecuteContext(t.Context()); err != nil {
		return "error: " + err.Error()
	}
	return out.String()
}
