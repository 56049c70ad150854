package crdtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/crdtest"
)

func userNetwork(spec string) string {
	return "{apiVersion: k8s.ovn.org/v1, kind: UserDefinedNetwork, metadata: {name: net, namespace: n}, spec: " + spec + "}"
}

// layer3 is a network of topology Layer3 with these fields beside its role.
func layer3(fields string) string {
	return userNetwork("{topology: Layer3, layer3: {role: Primary, " + fields + "}}")
}

func clusterNetwork(network string) string {
	return "{apiVersion: k8s.ovn.org/v1, kind: ClusterUserDefinedNetwork, metadata: {name: net}, spec: {namespaceSelector: " +
		"{matchLabels: {tenant: blue}}, network: " + network + "}}"
}

func manySubnets(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("{cidr: 10.%d.%d.0/24, hostSubnet: 26}", i/256, i%256))
	}
	return "subnets: [" + strings.Join(list, ", ") + "]"
}

func TestAcceptedUserDefinedNetworks(t *testing.T) {
	crd := crdtest.Load(t, "userdefinednetworks")
	for name, object := range map[string]string{
		"layer 3":                 layer3("subnets: [{cidr: 10.128.0.0/16, hostSubnet: 24}]"),
		"no hostSubnet":           layer3("subnets: [{cidr: 10.128.0.0/16}]"),
		"both families":           layer3("subnets: [{cidr: 10.128.0.0/16}, {cidr: 'fd00:128::/48'}], mtu: 1280"),
		"several of a family":     layer3("subnets: [{cidr: 10.128.0.0/16, hostSubnet: 24}, {cidr: 10.130.0.0/16, hostSubnet: 24}]"),
		"the most subnets":        layer3(manySubnets(400)),
		"join subnets":            layer3("subnets: [{cidr: 10.128.0.0/16}], joinSubnets: [100.70.0.0/16, 'fd70::/64']"),
		"a small mtu with IPv4":   layer3("subnets: [{cidr: 10.128.0.0/16}], mtu: 576"),
		"layer 3, secondary":      userNetwork("{topology: Layer3, layer3: {role: Secondary, subnets: [{cidr: 10.128.0.0/16}]}}"),
		"layer 2":                 userNetwork("{topology: Layer2, layer2: {role: Primary, subnets: [10.100.0.0/16], ipam: {lifecycle: Persistent}}}"),
		"layer 2 without subnets": userNetwork("{topology: Layer2, layer2: {role: Secondary, ipam: {mode: Disabled}}}"),
	} {
		t.Run(name, func(t *testing.T) {
			o := crdtest.Object(t, object)
			if have := crd.Refusals(o); len(have) > 0 {
				t.Errorf("refused: %v", have)
			}
			if have := crd.Unknown(o); len(have) > 0 {
				t.Errorf("lost: %v", have)
			}
		})
	}
}

func TestRefusedUserDefinedNetworks(t *testing.T) {
	crd := crdtest.Load(t, "userdefinednetworks")
	for name, c := range map[string]struct{ object, want string }{
		"no topology": {userNetwork("{layer3: {role: Primary, subnets: [{cidr: 10.0.0.0/16}]}}"),
			"spec.topology: Required"},
		"layer 3 without layer3": {userNetwork("{topology: Layer3}"), "needs layer3"},
		"the other's part":       {userNetwork("{topology: Layer2, layer3: {role: Primary, subnets: [{cidr: 10.0.0.0/16}]}}"), "needs layer3"},
		"localnet":               {userNetwork("{topology: Localnet}"), `Unsupported value: "Localnet"`},
		"no role":                {userNetwork("{topology: Layer3, layer3: {subnets: [{cidr: 10.0.0.0/16}]}}"), "role: Required"},
		"no subnet":              {layer3("subnets: []"), "should have at least 1 items"},
		"too many subnets":       {layer3(manySubnets(401)), "must have at most 400 items"},
		"no range":               {layer3("subnets: [{cidr: 10.0.0.0}]"), "is not a network"},
		"hostSubnet as long":     {layer3("subnets: [{cidr: 10.0.0.0/16, hostSubnet: 16}]"), "longer than the prefix"},
		"hostSubnet of a host":   {layer3("subnets: [{cidr: 10.0.0.0/16, hostSubnet: 32}]"), "below 32"},
		"different hostSubnets":  {layer3("subnets: [{cidr: 10.0.0.0/16, hostSubnet: 24}, {cidr: 10.1.0.0/16}]"), "the same hostSubnet"},
		"overlapping subnets":    {layer3("subnets: [{cidr: 10.0.0.0/8}, {cidr: 10.1.0.0/16}]"), "overlap"},
		"a subnet twice":         {layer3("subnets: [{cidr: 10.0.0.0/8}, {cidr: 10.0.0.0/8}]"), "more than once"},
		"two join subnets of IPv4": {layer3("subnets: [{cidr: 10.0.0.0/8}], joinSubnets: [100.70.0.0/16, 100.71.0.0/16]"),
			"two ranges of one family"},
		"a small mtu":     {layer3("subnets: [{cidr: 10.0.0.0/8}], mtu: 575"), "mtu"},
		"mtu below 1280":  {layer3("subnets: [{cidr: 'fd00::/48'}], mtu: 1279"), "at least 1280"},
		"secondary, join": {userNetwork("{topology: Layer3, layer3: {role: Secondary, subnets: [{cidr: 10.0.0.0/16}], joinSubnets: [100.70.0.0/16]}}"), "Primary only"},
		"secondary, two of IPv4": {userNetwork("{topology: Layer3, layer3: {role: Secondary, subnets: [{cidr: 10.0.0.0/16}, {cidr: 10.1.0.0/16}]}}"),
			"one is IPv4 and the other IPv6"},
	} {
		t.Run(name, func(t *testing.T) {
			if have := strings.Join(crd.Refusals(crdtest.Object(t, c.object)), "\n"); !strings.Contains(have, c.want) {
				t.Errorf("have %q, want %q", have, c.want)
			}
		})
	}
}

// TestChangedUserDefinedNetworks: subnets can be added, and nothing else can change.
func TestChangedUserDefinedNetworks(t *testing.T) {
	crd := crdtest.Load(t, "userdefinednetworks")
	const one = "{cidr: 10.128.0.0/16, hostSubnet: 24}"
	was := layer3("mtu: 1400, subnets: [" + one + "]")
	for name, c := range map[string]struct{ now, want string }{
		"a subnet is added": {layer3("mtu: 1400, subnets: [{cidr: 10.129.0.0/16, hostSubnet: 24}, " + one + "]"), ""},
		"a subnet is removed": {layer3("mtu: 1400, subnets: [{cidr: 10.129.0.0/16, hostSubnet: 24}]"),
			"cannot lose a subnet"},
		"hostSubnet changes": {layer3("mtu: 1400, subnets: [{cidr: 10.128.0.0/16, hostSubnet: 25}]"),
			"cannot lose a subnet"},
		"mtu changes":      {layer3("mtu: 1300, subnets: [" + one + "]"), "cannot change"},
		"role changes":     {userNetwork("{topology: Layer3, layer3: {role: Secondary, mtu: 1400, subnets: [" + one + "]}}"), "cannot change"},
		"topology changes": {userNetwork("{topology: Layer2, layer2: {role: Primary}}"), "cannot change"},
		"mtu goes":         {layer3("subnets: [" + one + "]"), "cannot change"},
		"joinSubnets are set later": {layer3("mtu: 1400, joinSubnets: [100.70.0.0/16], subnets: [" + one + "]"),
			"cannot change"},
	} {
		t.Run(name, func(t *testing.T) {
			have := strings.Join(crd.RefusedChanges(crdtest.Object(t, was), crdtest.Object(t, c.now)), "\n")
			if !strings.Contains(have, c.want) || c.want == "" && have != "" {
				t.Errorf("have %q, want %q", have, c.want)
			}
		})
	}
}

func TestClusterUserDefinedNetworks(t *testing.T) {
	crd := crdtest.Load(t, "clusteruserdefinednetworks")
	const primary = "topology: Layer3, layer3: {role: Primary, subnets: [{cidr: 10.128.0.0/16}]}"
	for name, c := range map[string]struct{ object, want string }{
		"layer 3": {clusterNetwork("{" + primary + "}"), ""},
		"Geneve":  {clusterNetwork("{" + primary + ", transport: Geneve}"), ""},
		"localnet": {clusterNetwork("{topology: Localnet, localnet: {role: Secondary, physicalNetworkName: p, " +
			"vlan: {mode: Access, access: {id: 100}}}}"), ""},
		"no overlay": {clusterNetwork("{" + primary + ", transport: NoOverlay, noOverlay: {outboundSNAT: Enabled, routing: Managed}}"),
			""},
		"EVPN": {clusterNetwork("{" + primary + ", transport: EVPN, evpn: {vtep: v, ipVRF: {vni: 1}}}"),
			""},
		"EVPN without its part": {clusterNetwork("{" + primary + ", transport: EVPN}"), "needs evpn"},
		"localnet in layer 3":   {clusterNetwork("{" + primary + ", localnet: {role: Secondary}}"), "needs localnet"},
		"no selector": {"{apiVersion: k8s.ovn.org/v1, kind: ClusterUserDefinedNetwork, metadata: {name: net}, spec: " +
			"{network: {" + primary + "}}}", "namespaceSelector: Required"},
		"a wrong selector": {"{apiVersion: k8s.ovn.org/v1, kind: ClusterUserDefinedNetwork, metadata: {name: net}, spec: {namespaceSelector: " +
			"{matchExpressions: [{key: a, operator: Is}]}, network: {" + primary + "}}}", "unknown operator"},
	} {
		t.Run(name, func(t *testing.T) {
			o := crdtest.Object(t, c.object)
			have := strings.Join(append(crd.Refusals(o), crd.Unknown(o)...), "\n")
			if !strings.Contains(have, c.want) || c.want == "" && have != "" {
				t.Errorf("have %q, want %q", have, c.want)
			}
		})
	}
}

func TestPrintedNetworks(t *testing.T) {
	const status = "{conditions: [{type: NetworkCreated, status: 'True', reason: NetworkAttachmentDefinitionCreated}]}"
	for plural, c := range map[string]struct{ object, heading, row string }{
		"userdefinednetworks": {layer3("subnets: [{cidr: 10.128.0.0/16}, {cidr: 'fd00:128::/48'}]"),
			"userdefinednetworks udn | Topology | Role | Subnets | Created | Reason | Age",
			`net | Layer3 | Primary | [{"cidr":"10.128.0.0/16"},{"cidr":"fd00:128::/48"}] | True | NetworkAttachmentDefinitionCreated | <nil>`},
		"clusteruserdefinednetworks": {clusterNetwork("{topology: Localnet, localnet: {role: Secondary}}"),
			"clusteruserdefinednetworks cudn | Topology | Role | Subnets | Created | Reason | Age",
			"net | Localnet | Secondary | <nil> | True | NetworkAttachmentDefinitionCreated | <nil>"},
	} {
		crd := crdtest.Load(t, plural)
		if have := crd.Heading(); have != c.heading {
			t.Errorf("have %s, want %s", have, c.heading)
		}
		object := crdtest.Object(t, c.object[:len(c.object)-1]+", status: "+status+"}")
		if have := crd.Row(t, object); have != c.row {
			t.Errorf("have %s, want %s", have, c.row)
		}
	}
}
