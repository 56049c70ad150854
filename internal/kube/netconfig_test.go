package kube_test

import (
	"net/netip"
	"strings"
	"testing"

	cniv1 "github.com/egret-net/egret/api/cni/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/world"
)

func definition(config string) *networks.Definition {
	o := &cniv1.NetworkAttachmentDefinition{Spec: cniv1.NetworkAttachmentDefinitionSpec{Config: config}}
	o.Namespace, o.Name = "n", "net"
	o.Annotations = map[string]string{v1.AnnotationNetworkID: "7", v1.AnnotationNetworkName: "n_net"}
	return kube.NetworkDefinition(o)
}

// TestDefinitionsAreReadAsWritten: what is written for a request says the same when it is read, and is what
// OVN-Kubernetes writes.
func TestDefinitionsAreReadAsWritten(t *testing.T) {
	subnets := []world.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.128.0.0/16"), NodeLen: 24},
		{CIDR: netip.MustParsePrefix("fd00:128::/48"), NodeLen: 64}}
	for _, c := range []networks.Config{
		{Name: "n_net", Subnets: subnets},
		{Name: "n_net", Subnets: []world.ClusterSubnet{{CIDR: subnets[0].CIDR, NodeLen: 29},
			{CIDR: subnets[1].CIDR, NodeLen: 125}}},
		{Name: "n_net", Subnets: subnets[:1], MTU: 1300, Join: []netip.Prefix{netip.MustParsePrefix("100.70.0.0/16")}},
	} {
		have := definition(kube.FormatNetworkConfig(c, "n/net"))
		if !c.Equal(have.Config) || !have.Counts() {
			t.Errorf("%+v is read as %+v; counts: %t, %s", c, have.Config, have.Counts(), have.Problem)
		}
	}
	const want = `{"cniVersion":"1.0.0","type":"ovn-k8s-cni-overlay","name":"n_net","netAttachDefName":"n/net",` +
		`"topology":"layer3","role":"primary","subnets":"10.128.0.0/16/24,fd00:128::/48/64",` +
		`"joinSubnet":"100.65.0.0/16,fd99::/64"}`
	if have := kube.FormatNetworkConfig(networks.Config{Name: "n_net", Subnets: subnets}, "n/net"); have != want {
		t.Errorf("have %s, want %s", have, want)
	}
}

// TestHostileDefinitions: what cannot be a network is a problem of its definition, or other plugins' business.
func TestHostileDefinitions(t *testing.T) {
	with := func(fields string) string {
		return `{"type":"ovn-k8s-cni-overlay","role":"primary","netAttachDefName":"n/net","topology":"layer3",` +
			fields + `}`
	}
	named := func(fields string) string { return with(`"name":"n_net",` + fields) }
	const eight = `"subnets":"10.0.0.0/8"`
	for config, want := range map[string]string{
		"":                                                   "others",
		"no JSON":                                            "others",
		`{"type":"macvlan","role":"primary"}`:                "others",
		`{"type":"ovn-k8s-cni-overlay"}`:                     "others",
		with(eight):                                          `name "" cannot be`,
		with(`"name":"default"`):                             `name "default" cannot be`,
		with(`"name":"a b"`):                                 `name "a b" cannot be`,
		named(`"mtu":1400`):                                  `"" is not a range`,
		named(`"subnets":"::/0/0"`):                          "no length",
		named(`"subnets":"10.0.0.0/24/30"`):                  "subnets of length 30: give a hostSubnet above the length of the range, and of at most 29",
		named(`"subnets":"fd00::/64/126"`):                   "at most 125",
		named(`"subnets":"10.0.0.0/24/24"`):                  "cannot be cut",
		named(`"subnets":"::ffff:10.0.0.0/112/120"`):         "is not a range",
		named(eight + `,"mtu":-1`):                           "mtu -1",
		named(eight + `,"transport":"evpn"`):                 "transport",
		named(eight + `,"joinSubnet":"1.0.0.0/8,2.0.0.0/8"`): "two ranges",
		named(`"subnets":"` + strings.Repeat("10.0.0.0/8,", 400) + `"`): "401 of them",
		strings.Replace(named(eight), "n/net", "m/net", 1):              "netAttachDefName",
		strings.Replace(named(eight), "layer3", "layer2", 1):            `topology "layer2"`,
	} {
		d := definition(config)
		is := want == "others" && !d.Served || want != "others" && strings.Contains(d.Problem, want)
		if !is || d.Counts() {
			t.Errorf("%s: served %t, problem %q, counts %t; want %s", config, d.Served, d.Problem, d.Counts(), want)
		}
	}
}

// TestUnservedDefinitionsName: a definition that Egret does not serve says which network it is about, all the same.
func TestUnservedDefinitionsName(t *testing.T) {
	for config, want := range map[string]string{
		`{"type":"ovn-k8s-cni-overlay","role":"secondary","topology":"layer3","name":"n_net"}`: "n_net",
		`{"type":"macvlan","name":"other"}`:                                                    "other",
		"no JSON":                                                                              "",
	} {
		if d := definition(config); d.Served || d.Config.Name != want {
			t.Errorf("%s: served %t, named %q; want %q", config, d.Served, d.Config.Name, want)
		}
	}
}
