package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/strvals"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
)

// install returns what helm install applies with these values, all in one text, or its complaint. Each value is what
// follows --set.
func install(t *testing.T, namespace string, values ...string) (string, error) {
	t.Helper()
	return installOn(t, nil, namespace, values...)
}

func installOn(t *testing.T, nodes withNodes, namespace string, values ...string) (string, error) {
	t.Helper()
	c, err := loader.LoadDir(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]any{}
	for _, v := range values {
		if err := strvals.ParseInto(v, given); err != nil {
			t.Fatal(err)
		}
	}
	all, err := util.ToRenderValues(c, given, common.ReleaseOptions{Name: "egret", Namespace: namespace}, nil)
	if err != nil {
		return "", err
	}
	rendered, err := engine.RenderWithClientProvider(c, all, nodes)
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		out.WriteString(rendered[name])
	}
	return out.String(), err
}

const host = "settings.KUBERNETES_SERVICE_HOST=192.0.2.1"

// TestMistakesAreNamed: values that cannot work are refused before anything is installed, with the name of the value.
func TestMistakesAreNamed(t *testing.T) {
	for value, want := range map[string]string{
		"settings.MTU=x":                      `at '/settings/MTU': 'x' does not match pattern`,
		"settings.MTU=-1":                     `at '/settings/MTU': minimum: got -1, want 0`,
		"settings.MTU=65536":                  `at '/settings/MTU': maximum: got 65,536, want 65,535`,
		"settings.ENCAP_PORT=0":               `at '/settings/ENCAP_PORT': minimum: got 0, want 1`,
		"settings.KUBERNETES_SERVICE_PORT=0":  `at '/settings/KUBERNETES_SERVICE_PORT': minimum: got 0, want 1`,
		"settings.JOIN_SUBNET_V4=fd98::/64":   `at '/settings/JOIN_SUBNET_V4': 'fd98::/64' does not match pattern`,
		"settings.SLOT_SUBNET_V6=10.0.0.0/13": `at '/settings/SLOT_SUBNET_V6': '10.0.0.0/13' does not match pattern`,
		"settings.ENCAP_PORT=65536":           `at '/settings/ENCAP_PORT': maximum: got 65,536, want 65,535`,
		"settings.CLUSTER_SUBNET=10.0.0.0":    `at '/settings': additional properties 'CLUSTER_SUBNET' not allowed`,
		"settings.CLUSTER_SUBNETS=10.0.0.0":   `at '/settings/CLUSTER_SUBNETS': '10.0.0.0' does not match pattern`,
		"settings.GATEWAY_MODE=locale":        `at '/settings/GATEWAY_MODE': value must be one of '', 'shared', 'local'`,
		"settings.LOG_FORMAT=true":            `at '/settings/LOG_FORMAT': value must be one of`,
		"settings.KUBERNETES_SERVICE_HOST=https://192.0.2.1:6443": `at '/settings/KUBERNETES_SERVICE_HOST': ` +
			`'https://192.0.2.1:6443' does not match pattern`,
		"settings.KUBERNETES_SERVICE_HOST=192.0.2.1:6443": `'192.0.2.1:6443' does not match pattern`,

		"settings.KUBERNETES_SERVICE_HOST=": "settings.KUBERNETES_SERVICE_HOST: give the address, or the name, by which",
		"setting.MTU=1300":                  `additional properties 'setting' not allowed`,
		"image.tags=v1":                     `at '/image': additional properties 'tags' not allowed`,
		"image.digest=0123":                 `at '/image/digest': '0123' does not match pattern`,
		"controller.replicas=0":             `at '/controller/replicas': minimum: got 0, want 1`,
		"monitoring.podMonitors.enabled=true": `at '/monitoring': additional properties 'podMonitors' not ` +
			`allowed`,
	} {
		if _, err := install(t, "egret-system", host, value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have %v\nwant %s", value, err, want)
		}
	}
}

// TestRangesThatCannotWork: as in package settings, where programs refuse the same.
func TestRangesThatCannotWork(t *testing.T) {
	for value, want := range map[string]string{
		`CLUSTER_SUBNETS=10.244.0.0/16/24\,10.244.1.0/24`: "CLUSTER_SUBNETS 10.244.0.0/16/24 and " +
			"settings.CLUSTER_SUBNETS 10.244.1.0/24 overlap",
		"CLUSTER_SUBNETS=10.64.0.0/10/24": "settings.CLUSTER_SUBNETS 10.64.0.0/10/24 and settings.SERVICE_SUBNETS " +
			"10.96.0.0/16 overlap: give SERVICE_SUBNETS outside the other",
		"SERVICE_SUBNETS=10.244.128.0/24":        "CLUSTER_SUBNETS 10.244.0.0/16/24 and settings.SERVICE_SUBNETS 10.244.128.0/24",
		"CLUSTER_SUBNETS=100.64.0.0/14/24":       "CLUSTER_SUBNETS 100.64.0.0/14/24 and settings.JOIN_SUBNET_V4",
		"CLUSTER_SUBNETS=100.100.0.0/16":         "CLUSTER_SUBNETS 100.100.0.0/16 and settings.SLOT_SUBNET_V4",
		"SERVICE_SUBNETS=169.254.169.0/24":       "MASQUERADE_SUBNET_V4 169.254.169.0/29 and settings.SERVICE_SUBNETS",
		"JOIN_SUBNET_V4=254.0.0.0/16":            "254.0.0.0/8, which is fixed, and settings.JOIN_SUBNET_V4 254.0.0.0/16 overlap",
		"JOIN_SUBNET_V6=fd96:1000::/64":          "fd96:1000::/25, which is fixed, and settings.JOIN_SUBNET_V6",
		"CLUSTER_SUBNETS=fd98::/48/64":           "CLUSTER_SUBNETS fd98::/48/64 and settings.JOIN_SUBNET_V6 fd98::/64",
		"CLUSTER_SUBNETS=fd96:8::/32/64":         "CLUSTER_SUBNETS fd96:8::/32/64 and settings.SLOT_SUBNET_V6 fd96:8::/29",
		"SERVICE_SUBNETS=fd69:0:0:0:0:0:0:0/112": "MASQUERADE_SUBNET_V6 fd69::/125 and settings.SERVICE_SUBNETS",
		"CLUSTER_SUBNETS=::/0/64":                "overlap",

		"CLUSTER_SUBNETS=10.244.0.0/25": "settings.CLUSTER_SUBNETS 10.244.0.0/25 has no room for a node's part of /24: " +
			"give parts of /25 to /29",
		"CLUSTER_SUBNETS=10.244.0.0/16/30": "has no room for a node's part of /30: give parts of /16 to /29",
		"CLUSTER_SUBNETS=10.244.0.0/30/30": "settings.CLUSTER_SUBNETS 10.244.0.0/30/30 is too small: give a range of /29 or less",
		"CLUSTER_SUBNETS=fd01::/72/64":     "has no room for a node's part of /64: give parts of /72 to /125",
		"SERVICE_SUBNETS=10.96.0.0/33":     "settings.SERVICE_SUBNETS 10.96.0.0/33 is too small: give a range of /32 or less",
		"JOIN_SUBNET_V4=100.64.0.0/17":     "settings.JOIN_SUBNET_V4 100.64.0.0/17 is too small: give a range of /16 or less",
		"TRANSIT_SUBNET_V6=fd97::/113":     "settings.TRANSIT_SUBNET_V6 fd97::/113 is too small: give a range of /112 or less",
		"MASQUERADE_SUBNET_V6=fd69::/126":  "settings.MASQUERADE_SUBNET_V6 fd69::/126 is too small: give a range of /125",
		"SLOT_SUBNET_V4=100.96.0.0/12":     "settings.SLOT_SUBNET_V4 100.96.0.0/12: give a range of /13",
		"SLOT_SUBNET_V6=fd96:8::/30":       "settings.SLOT_SUBNET_V6 fd96:8::/30: give a range of /29",
		"CLUSTER_SUBNETS=fd00:10:244::/48": "settings.SERVICE_SUBNETS 10.96.0.0/16 is of a family that settings.CLUSTER_SUBNETS",
		"SERVICE_SUBNETS=fd00:10:96::/112": "is of a family that settings.CLUSTER_SUBNETS 10.244.0.0/16/24 lacks",
		"MTU=575":                          "settings.MTU 575: give as many bytes as each link is to carry, of IPv4 576 (RFC 1122)",

		`MTU=1279,settings.CLUSTER_SUBNETS=fd01::/48\,10.8.0.0/16`: "of IPv6 1280 (RFC 8200), or 0 for what the nodes' links carry",
	} {
		_, err := install(t, "egret-system", host, "settings."+value)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have %v\nwant %s", value, err, want)
		}
	}
	for _, values := range []string{
		`CLUSTER_SUBNETS=10.244.0.0/16/24\,fd00:10:244::/48/64 SERVICE_SUBNETS=10.96.0.0/16\,fd00:10:96::/112`,
		`CLUSTER_SUBNETS=10.244.0.0/14/24`,
		`CLUSTER_SUBNETS=10.244.0.0/16/24\,10.245.0.0/16/24`,
		`CLUSTER_SUBNETS=10.128.0.0/14/23 SERVICE_SUBNETS=172.30.0.0/16 MTU=1300 MTU=0`,
		`CLUSTER_SUBNETS=100.64.0.0/14/24 JOIN_SUBNET_V4=100.70.0.0/16 JOIN_SUBNET_V6=fd99::/64 TRANSIT_SUBNET_V4=100.89.0.0/16`,
		`CLUSTER_SUBNETS=fd00:10:244::/48 SERVICE_SUBNETS=fd69:0:0:0:0:0:0:8/125 MTU=1280`,
		`CLUSTER_SUBNETS=10.244.0.0/24 MTU=576`,
		`CLUSTER_SUBNETS=10.244.0.0/16/24\,fd00:10:244::/48/64`,
		`SLOT_SUBNET_V4=100.104.0.0/13 JOIN_SUBNET_V6=fd98::/112 HEALTHCHECK_PORT=0 ENCAP_PORT= MTU=`,
	} {
		all := []string{host}
		for _, v := range strings.Fields(values) {
			all = append(all, "settings."+v)
		}
		if _, err := install(t, "egret-system", all...); err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// TestValuesArrive: what somebody gives is in the objects, once for each that has it.
func TestValuesArrive(t *testing.T) {
	rules, err := os.ReadFile(chartFolder + "/monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	alerts := strings.Count(string(rules), "- alert: ")
	const sum = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
	for _, c := range []struct {
		value, text string
		count       int
	}{
		{host, `KUBERNETES_SERVICE_HOST: "192.0.2.1"`, 1},
		{host, "annotations: {checksum/settings: ", 2},
		{host, "image: localhost/egret:v0.1.0\n", 9},
		{host, "helm.sh/resource-policy: keep", 10},
		{"remove=true", "helm.sh/resource-policy: keep", 7},
		{host, `helm.sh/chart: "egret-0.0.0"`, 2},
		{host, "kind: PodMonitor", 0},
		{"settings.KUBERNETES_SERVICE_HOST=2001:db8::1", `KUBERNETES_SERVICE_HOST: "2001:db8::1"`, 1},
		{"settings.KUBERNETES_SERVICE_HOST=api.example.org", `KUBERNETES_SERVICE_HOST: "api.example.org"`, 1},
		{"settings.MTU=1300", "\n  MTU: \"1300\"\n", 1},
		{"settings.KUBERNETES_SERVICE_PORT=443", "\n  KUBERNETES_SERVICE_PORT: \"443\"\n", 1},
		{"image.repository=registry.example.org/egret", "image: registry.example.org/egret:v0.1.0\n", 9},
		{"image.tag=v2", "image: localhost/egret:v2\n", 9},
		{"image.digest=" + sum, "image: localhost/egret@" + sum + "\n", 9},
		{"image.pullPolicy=Always", "imagePullPolicy: Always\n", 9},
		{"image.pullSecrets[0].name=registry", `imagePullSecrets: [{"name":"registry"}]`, 3},
		{"controller.replicas=1", "\n  replicas: 1\n", 1},
		{host, "name: egret-remove\n", 0},
		{"remove=true", "kind: Deployment\n", 0},
		{"remove=true", "\n  name: egret-node\n  namespace: egret-system\nspec:\n", 0},
		{"remove=true", "\n  name: egret-ovs\n  namespace: egret-system\nspec:\n", 1},
		{"remove=true", "\n  name: egret-remove\n  namespace: egret-system\nspec:\n", 1},
		{"remove=true,image.tag=v2", "image: localhost/egret:v2\n", 4},
		{"remove=true,image.pullPolicy=Always", "imagePullPolicy: Always\n", 4},
		{"remove=true,image.pullSecrets[0].name=registry", `imagePullSecrets: [{"name":"registry"}]`, 2},
		{"remove=true", "helm uninstall egret --namespace egret-system\n", 1},
		{"controller.resources.limits.memory=1Gi", "memory: 1Gi", 1},
		{"node.resources.requests.memory=1Gi", "memory: 1Gi", 1},
		{"crds.networkAttachmentDefinitions=false", "kind: CustomResourceDefinition", 6},
		{"monitoring.podMonitor.enabled=true", "kind: PodMonitor", 1},
		{"monitoring.podMonitor.enabled=true", "scheme: https", 0},
		{"monitoring.podMonitor.enabled=true,monitoring.podMonitor.labels.release=prometheus,settings.METRICS_TLS_KEY=x," +
			"monitoring.podMonitor.tlsConfig.serverName=egret", `tlsConfig: {"serverName":"egret"}`, 1},
		{"monitoring.prometheusRule.enabled=true", "kind: PrometheusRule", 1},
		{"monitoring.prometheusRule.enabled=true", "- alert: ", alerts},
		{"monitoring.prometheusRule.enabled=true", "{{ $labels.kind }}s that are not Ready: {{ $value }}", 1},
		{"monitoring.prometheusRule.enabled=true,monitoring.prometheusRule.labels.release=x", "release: x\n", 1},
		{"monitoring.dashboards.enabled=true", `labels: {"grafana_dashboard":"1"}`, 2},
		{"monitoring.dashboards.enabled=true", `dashboard-nodes.json: "{\n  \"uid\": \"egret-nodes\"`, 1},
	} {
		text, err := install(t, "egret-system", host, c.value)
		if have := strings.Count(text, c.text); err != nil || have != c.count {
			t.Errorf("%s: %q is there %d times, want %d: %v", c.value, c.text, have, c.count, err)
		}
	}
}

// withNodes is a cluster with these nodes, as a template asks for them.
type withNodes []runtime.Object

func (n withNodes) GetClientFor(string, string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return fake.NewSimpleDynamicClient(scheme.Scheme, n...).Resource(corev1.SchemeGroupVersion.WithResource("nodes")),
		false, nil
}

// TestControllersHaveNodes: where one node is the whole cluster a second controller would stay Pending, and Helm says
// why there is none. The first node of kubeadm's is not the whole cluster.
func TestControllersHaveNodes(t *testing.T) {
	node := func(name string, taints ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, key := range taints {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
		return n
	}
	const notReady, controlPlane = "node.kubernetes.io/not-ready", "node-role.kubernetes.io/control-plane"
	for _, c := range []struct {
		nodes withNodes
		want  int
	}{
		{nil, 3},
		{withNodes{node("n1")}, 1},
		{withNodes{node("n1", notReady)}, 1},
		{withNodes{node("n1", notReady, controlPlane)}, 3},
		{withNodes{node("n1"), node("n2")}, 3},
	} {
		text, err := installOn(t, c.nodes, "egret-system", host, "controller.replicas=3")
		if !strings.Contains(text, fmt.Sprintf("\n  replicas: %d\n", c.want)) || err != nil {
			t.Errorf("on %d nodes there are not %d controllers: %v", len(c.nodes), c.want, err)
		}
		if says := strings.Contains(text, "When it has more nodes, give it 3"); says != (c.want == 1) {
			t.Errorf("on %d nodes Helm says that it has one: %t", len(c.nodes), says)
		}
	}
}

// TestNamespaces: of the release's own namespace there may be an object that Helm must not make.
func TestNamespaces(t *testing.T) {
	for namespace, want := range map[string]int{"egret-system": 1, "kube-system": 2} {
		text, err := install(t, namespace, host)
		if have := strings.Count(text, "kind: Namespace\n"); err != nil || have != want {
			t.Errorf("in %s: %d namespaces, want %d: %v", namespace, have, want, err)
		}
	}
}

// TestSettingsReplacePods: the annotation by which agents' and controllers' pods are replaced differs when a setting
// does, and then only.
func TestSettingsReplacePods(t *testing.T) {
	sums := map[string]int{}
	for _, value := range []string{"image.tag=v1", "image.tag=v2", "settings.MTU=1300", "settings.LOG_FORMAT=json"} {
		text, err := install(t, "egret-system", host, value)
		if err != nil {
			t.Fatal(value, err)
		}
		for _, sum := range regexp.MustCompile("checksum/settings: [0-9a-f]{64}").FindAllString(text, -1) {
			sums[sum]++
		}
	}
	if have := slices.Sorted(maps.Values(sums)); !slices.Equal(have, []int{2, 2, 4}) {
		t.Errorf("pods with the same checksum: %d, want 2, 2 and 4", have)
	}
}
