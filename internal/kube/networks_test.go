package kube

import (
	"fmt"
	"net/netip"
	"testing"

	v1 "github.com/egret-net/egret/api/v1"
)

// TestOtherNetworksAreIgnored: whatever an annotation says of other networks, the default one's part is read, and
// nothing is a problem.
func TestOtherNetworksAreIgnored(t *testing.T) {
	for _, blue := range []string{
		`["10.9.0.0/24"]`, `{"ipv4":"100.65.0.2/16"}`, `7`, `null`, `[[1]]`, `{"mac-address":4}`,
	} {
		o := annotated(map[string]string{
			v1.AnnotationNodeSubnets:                 `{"blue":` + blue + `,"default":["10.244.1.0/24"]}`,
			v1.AnnotationL3GatewayConfig:             `{"blue":` + blue + `,"default":{"next-hops":["172.18.0.1"]}}`,
			v1.AnnotationNodeGatewayRouterLRPIfaddrs: `{"blue":` + blue + `,"default":{"ipv4":"100.64.0.2/16"}}`,
		})
		n := Node(o)
		have := fmt.Sprint(n.Subnets, n.Gateways, n.Join, n.Problems)
		if want := "[10.244.1.0/24] [172.18.0.1] [100.64.0.2/16] []"; have != want {
			t.Errorf("with %s: %s, want %s", blue, have, want)
		}
		others, want := n.OtherNetworks, `{"blue":`+blue+`}`
		if len(others) != 3 || others[v1.AnnotationNodeSubnets] != want {
			t.Errorf("of others %v, want %s", others, want)
		}
	}
}

// TestOtherNetworksStay: what is written keeps what is said of other networks, and replaces what is said of the
// default one, or cannot be read.
func TestOtherNetworksStay(t *testing.T) {
	join, transit := mustPrefixes("100.64.0.2/16"), mustPrefixes("100.88.0.2/16")
	set := AllocationAnnotations(2, mustPrefixes("10.244.1.0/24"), join, transit)
	for have, want := range map[string]string{
		"":                                   `{"default":["10.244.1.0/24"]}`,
		"{":                                  `{"default":["10.244.1.0/24"]}`,
		`{"default":["10.244.9.0/24"]}`:      `{"default":["10.244.1.0/24"]}`,
		`{"blue":["10.9.0.0/24"]}`:           `{"blue":["10.9.0.0/24"],"default":["10.244.1.0/24"]}`,
		`{"red": 7, "blue":["10.9.0.0/24"]}`: `{"blue":["10.9.0.0/24"],"default":["10.244.1.0/24"],"red":7}`,
	} {
		stands := map[string]string{v1.AnnotationNodeSubnets: have, v1.AnnotationNodeID: "1"}
		merged := MergeNetworks(stands, set)
		if merged[v1.AnnotationNodeSubnets] != want || merged[v1.AnnotationNodeID] != "2" || len(merged) != len(set) {
			t.Errorf("onto %s: %v, want %s", have, merged, want)
		}
		if again := MergeNetworks(otherNetworks(stands), set); again[v1.AnnotationNodeSubnets] != want {
			t.Errorf("onto what a Node keeps of %s: %v, want %s", have, again, want)
		}
	}
}

// TestPublishedIsTheDefaultNetworks: an agent does not write anew because of what is said of other networks.
func TestPublishedIsTheDefaultNetworks(t *testing.T) {
	gateway := netip.MustParseAddr("172.18.0.1")
	own := HostAnnotations(HostFacts{Zone: "n1", Bridge: "breth0", Gateways: []netip.Addr{gateway}})
	with := MergeNetworks(map[string]string{v1.AnnotationL3GatewayConfig: `{"blue":{"mode":"shared"}}`}, own)
	if with[v1.AnnotationL3GatewayConfig] == own[v1.AnnotationL3GatewayConfig] {
		t.Fatal("nothing was merged")
	}
	if Published(with) != Published(own) {
		t.Error("another network's part counts as the agent's")
	}
}
