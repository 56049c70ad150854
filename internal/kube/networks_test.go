package kube

import (
	"fmt"
	"net/netip"
	"testing"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

// TestOtherNetworksAreIgnored: whatever an annotation says of other networks, the default one's part is read, and
// nothing is a problem.
func TestOtherNetworksAreIgnored(t *testing.T) {
	for _, blue := range []string{
		`["10.9.0.0/24"]`, `{"ipv4":"100.65.0.2/16"}`, `7`, `null`, `[[1]]`, `{"mac-address":4}`,
	} {
		o := annotated(map[string]string{
			v1.AnnotationL3GatewayConfig:             `{"blue":` + blue + `,"default":{"next-hops":["172.18.0.1"]}}`,
			v1.AnnotationNodeGatewayRouterLRPIfaddrs: `{"blue":` + blue + `,"default":{"ipv4":"100.64.0.2/16"}}`,
		})
		n := Node(o)
		have := fmt.Sprint(n.Gateways, n.Join, n.Problems)
		if want := "[172.18.0.1] [100.64.0.2/16] []"; have != want {
			t.Errorf("with %s: %s, want %s", blue, have, want)
		}
		others, want := n.OtherNetworks, `{"blue":`+blue+`}`
		if len(others) != 2 || others[v1.AnnotationL3GatewayConfig] != want {
			t.Errorf("of others %v, want %s", others, want)
		}
	}
}

// TestOtherNetworksStay: what is written keeps what is said of other networks, and replaces what is said of the
// default one, or cannot be read.
func TestOtherNetworksStay(t *testing.T) {
	join, transit := mustPrefixes("100.64.0.2/16"), mustPrefixes("100.88.0.2/16")
	set := AllocationAnnotations(world.Allocation{ID: 2, Join: join, Transit: transit})
	const key = v1.AnnotationNodeGatewayRouterLRPIfaddrs
	for have, want := range map[string]string{
		"":                                `{"default":{"ipv4":"100.64.0.2/16"}}`,
		"{":                               `{"default":{"ipv4":"100.64.0.2/16"}}`,
		`{"default":["100.64.0.9/16"]}`:   `{"default":{"ipv4":"100.64.0.2/16"}}`,
		`{"red": 7, "blue":["10.9.0.0"]}`: `{"blue":["10.9.0.0"],"default":{"ipv4":"100.64.0.2/16"},"red":7}`,
	} {
		stands := map[string]string{key: have, v1.AnnotationNodeID: "1"}
		merged := MergeNetworks(stands, set)
		if merged[key] != want || merged[v1.AnnotationNodeID] != "2" || len(merged) != len(set) {
			t.Errorf("onto %s: %v, want %s", have, merged, want)
		}
		if again := MergeNetworks(otherNetworks(stands), set); again[key] != want {
			t.Errorf("onto what a Node keeps of %s: %v, want %s", have, again, want)
		}
	}
}

// TestPartsOfNetworks: subnets of one network that cannot be read are a problem, and do not keep the others' from being
// read.
func TestPartsOfNetworks(t *testing.T) {
	for text, want := range map[string]string{
		`{"blue":["10.9.1.0/24"],"default":["10.244.1.0/24"]}`:     "[10.244.1.0/24] map[blue:[10.9.1.0/24]] 0",
		`{"blue":"10.9.1.0/24","red":["10.9.1.0/24","fd09::/64"]}`: "[] map[blue:[10.9.1.0/24] red:[10.9.1.0/24 fd09::/64]] 0",
		`{"blue":7,"red":["10.9.1.0/24"]}`:                         "[] map[red:[10.9.1.0/24]] 1",
		`{"blue":["x","10.9.1.0/24"],"red":null}`:                  "[] map[blue:[10.9.1.0/24]] 1",
		`{"default":{},"red":["10.9.1.0/24"]}`:                     "[] map[red:[10.9.1.0/24]] 1",
	} {
		n, further := Node(annotated(map[string]string{v1.AnnotationNodeSubnets: text})), map[string][]netip.Prefix{}
		for name, part := range n.Further {
			further[name] = part.Subnets
		}
		if have := fmt.Sprint(n.Subnets, further, len(n.Problems)); have != want {
			t.Errorf("%s: %s, want %s; %v", text, have, want, n.Problems)
		}
	}
}

// TestSubnetsThatCannotBeGiven: where the default network has no subnet for a node, its annotation stays as it is.
func TestSubnetsThatCannotBeGiven(t *testing.T) {
	shown, should := &world.Node{Subnets: mustPrefixes("10.244.1.0/24")}, &world.Node{}
	should.Further = map[string]world.NodeNetwork{"blue": {Subnets: mustPrefixes("10.9.1.0/24")}}
	if set := missingAnnotations(shown, should); len(set) > 0 {
		t.Errorf("writes %v", set)
	}
	should.Subnets = shown.Subnets
	const want = `{"blue":["10.9.1.0/24"],"default":["10.244.1.0/24"]}`
	if set := missingAnnotations(shown, should); set[v1.AnnotationNodeSubnets] != want {
		t.Errorf("writes %v, want %s", set, want)
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
