package kube

import (
	"maps"
	"testing"

	v1 "github.com/egret-net/egret/api/v1"
)

// TestPublished: what the agent wrote is recognised, whatever else the Node has; what is changed, or gone, of it is
// not.
func TestPublished(t *testing.T) {
	own := HostAnnotations(HostFacts{Zone: "n1", ChassisID: "n1", UplinkMAC: "02:00:00:00:00:01",
		Primary: mustPrefixes("172.18.0.2/24"), HostCIDRs: mustPrefixes("172.18.0.2/24")})
	all := maps.Clone(own)
	all[v1.AnnotationNodeID], all["another"] = "2", "x"
	if Node(annotated(all)).Published != Published(own) {
		t.Error("what the agent wrote is not recognised")
	}
	for key := range own {
		for _, garble := range []func(map[string]string){
			func(m map[string]string) { m[key] = "garbage" }, func(m map[string]string) { m[key] = "" },
			func(m map[string]string) { delete(m, key) },
		} {
			garbled := maps.Clone(all)
			if garble(garbled); Node(annotated(garbled)).Published == Published(own) {
				t.Errorf("%s: %q passes for what the agent wrote", key, garbled[key])
			}
		}
	}
}
