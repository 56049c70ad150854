package demo

import (
	"embed"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

//go:embed objects/*.yaml
var objects embed.FS

// podManifests are two namespaces with servers on every node: web and db in prod, web in dev, and on-node in the nodes'
// own network.
func podManifests() (string, error) {
	content, err := objects.ReadFile("objects/pods.yaml")
	return string(content), err
}

// egressIP is the example of seeds/egress-ip.md, with addresses of the sandbox's families. In a dual-stack cluster one
// object has all of them: a pod is served by one EgressIP, not by one for each family.
func egressIP(f sandbox.IPFamily) (*v1.EgressIP, error) {
	content, err := objects.ReadFile("objects/egressip.yaml")
	if err != nil {
		return nil, err
	}
	e := &v1.EgressIP{}
	if err := yaml.UnmarshalStrict(content, e); err != nil {
		return nil, fmt.Errorf("objects/egressip.yaml: %w", err)
	}
	six := []string{"fc00:f853:ccd:e793::33", "fc00:f853:ccd:e793::44"}
	switch f {
	case sandbox.IPv6:
		e.Spec.EgressIPs = six
	case sandbox.Dual:
		e.Spec.EgressIPs = slices.Concat(e.Spec.EgressIPs, six)
	}
	return e, nil
}
