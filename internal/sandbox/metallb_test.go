package sandbox

import (
	"strings"
	"testing"
)

// metalLBSample has an object of each kind that is treated in its own way, cut down from MetalLB's manifest to what
// concerns that.
const metalLBSample = `apiVersion: v1
kind: Namespace
metadata: {name: metallb-system}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bgppeers.metallb.io}
spec:
  conversion: {strategy: Webhook}
  group: metallb.io
  versions:
  - name: v1beta2
    schema:
      openAPIV3Schema:
        properties:
          peerASN: {type: integer, format: int32, minimum: 0, maximum: 4294967295}
          peerPort: {type: integer, format: int32, minimum: 1, maximum: 16384}
---
apiVersion: v1
kind: Service
metadata: {name: metallb-webhook-service, namespace: metallb-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: controller, namespace: metallb-system}
spec:
  selector: {matchLabels: {component: controller}}
  template:
    metadata: {labels: {component: controller}}
    spec:
      containers:
      - name: controller
        image: elsewhere/controller:v0
        args: [--port=7472]
        readinessProbe: {httpGet: {path: /metrics, port: monitoring}, initialDelaySeconds: 10, periodSeconds: 10}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: speaker, namespace: metallb-system}
spec:
  selector: {matchLabels: {component: speaker}}
  template:
    metadata: {labels: {component: speaker}}
    spec:
      hostNetwork: true
      containers:
      - name: speaker
        image: elsewhere/speaker:v0
        args: [--port=7472]
        env: [{name: METALLB_ML_LABELS, value: "app=metallb"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: metallb-webhook-configuration}
`

// TestMetalLBManifests: of an installation of MetalLB only images, webhooks, the probes' times and the widths of
// numbers are others.
func TestMetalLBManifests(t *testing.T) {
	have, err := metalLBManifests(metalLBSample)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "metallb.yaml", have)
	if _, err := metalLBManifests("kind: [\n"); err == nil {
		t.Error("no error of a manifest that is no YAML")
	}
}

// TestRouter: one external host is a router, where MetalLB is and IPv4.
func TestRouter(t *testing.T) {
	for _, c := range []struct {
		name    string
		options func(*Options)
		is      string
	}{
		{"without MetalLB", nil, ""},
		{"with", func(o *Options) { o.MetalLB = true }, "egret-ext1"},
		{"dual-stack", func(o *Options) { o.MetalLB, o.IPFamily = true, Dual }, "egret-ext1"},
		{"IPv6", func(o *Options) { o.MetalLB, o.IPFamily = true, IPv6 }, ""},
		{"without hosts", func(o *Options) { o.MetalLB, o.ExternalHosts = true, 0 }, ""},
	} {
		l := newLayout(options(c.options))
		var routers []string
		for _, h := range l.hostEndpoints() {
			r, is := routerOf(l, h)
			if is != (asRouter(l, h) != "") {
				t.Errorf("%s: %q is said of %s, a router: %t", c.name, asRouter(l, h), h.name, is)
			}
			if is {
				routers = append(routers, r.name)
			}
		}
		if have := strings.Join(routers, " "); have != c.is {
			t.Errorf("%s: router %q, want %q", c.name, have, c.is)
		}
	}
	l := newLayout(options(func(o *Options) { o.MetalLB, o.IPFamily = true, Dual }))
	r, _ := routerOf(l, l.hostEndpoints()[0])
	golden(t, "router.txt", strings.Join(r.daemonArgs("bgpd"), "\n")+"\n\n"+bgpConfig(r.ip, l.primary[0].prefix))
}

// TestMetalLBImages: who did not ask for MetalLB does not wait for its images.
func TestMetalLBImages(t *testing.T) {
	with := imageFiles(options(func(o *Options) { o.MetalLB = true }))
	if have := len(with) - len(imageFiles(options(nil))); have != 2 {
		t.Errorf("MetalLB adds %d images, want 2: %v", have, with)
	}
}
