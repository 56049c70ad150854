package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// cniConfig is spec.config of a NetworkAttachmentDefinition, as OVN-Kubernetes writes and reads it.
type cniConfig struct {
	CNIVersion string `json:"cniVersion,omitempty"`
	Type       string `json:"type"`
	Name       string `json:"name"`
	Definition string `json:"netAttachDefName"`
	Topology   string `json:"topology"`
	Role       string `json:"role,omitempty"`
	MTU        int    `json:"mtu,omitempty"`
	Subnets    string `json:"subnets,omitempty"`
	JoinSubnet string `json:"joinSubnet,omitempty"`
	Transport  string `json:"transport,omitempty"`
}

// cniType is the type of configurations that are Egret's to serve.
const cniType = "ovn-k8s-cni-overlay"

// maxNetworkSubnets is the CRDs' bound.
const maxNetworkSubnets = 400

// FormatNetworkConfig is the configuration that the definition of that key has.
func FormatNetworkConfig(c networks.Config, definition string) string {
	var subnets []string
	for _, s := range c.Subnets {
		subnets = append(subnets, fmt.Sprintf("%s/%d", s.CIDR, s.NodeLen))
	}
	join := c.Join
	if len(join) == 0 {
		join = networks.DefaultJoin()
	}
	text, err := json.Marshal(cniConfig{CNIVersion: "1.0.0", Type: cniType, Name: c.Name, Definition: definition,
		Topology: "layer3", Role: "primary", MTU: c.MTU, Subnets: strings.Join(subnets, ","),
		JoinSubnet: joinTexts(join)})
	if err != nil {
		panic(err) // strings and a number can be encoded
	}
	return string(text)
}

func joinTexts(list []netip.Prefix) string {
	var out []string
	for _, p := range list {
		out = append(out, p.String())
	}
	return strings.Join(out, ",")
}

// reservedNetworks are names that no user's network has, as OVN-Kubernetes reserves them.
var reservedNetworks = map[string]bool{"": true, ref.DefaultNetwork: true, "ovn-kubernetes": true}

// parseNetworkConfig reads the configuration of the definition of that key. served is false for other plugins'
// configurations, and for networks that are not the primary ones of pods. It reads no more than their names.
func parseNetworkConfig(text, definition string) (c networks.Config, served bool, err error) {
	var said cniConfig
	switch readable := json.Unmarshal([]byte(text), &said) == nil; {
	case !readable:
		return networks.Config{}, false, nil
	case said.Type != cniType || said.Role != "primary":
		return networks.Config{Name: said.Name}, false, nil
	}
	c = networks.Config{Name: said.Name, MTU: said.MTU}
	switch {
	case reservedNetworks[said.Name] || !isNetworkName(said.Name):
		return c, true, fmt.Errorf("name %q cannot be a network's", plainText(said.Name))
	case said.Topology != "layer3":
		return c, true, fmt.Errorf("topology %q is not served: only layer3 is", plainText(said.Topology))
	case said.Transport != "" && said.Transport != "geneve":
		return c, true, fmt.Errorf("transport %q is not served: only geneve is", plainText(said.Transport))
	case said.Definition != definition:
		return c, true, fmt.Errorf("netAttachDefName is %q: it must be %s", plainText(said.Definition), definition)
	case said.MTU != 0 && (said.MTU < 576 || said.MTU > 65536):
		return c, true, fmt.Errorf("mtu %d is not from 576 to 65536", said.MTU)
	}
	if c.Subnets, err = parseNetworkSubnets(said.Subnets); err != nil {
		return c, true, fmt.Errorf("subnets: %w", err)
	}
	if c.Join, err = parseJoin(said.JoinSubnet); err != nil {
		return c, true, fmt.Errorf("joinSubnet: %w", err)
	}
	return c, true, nil
}

// maxNetworkName is how long a network's name is: that of an object, with the longest of a namespace before it.
const maxNetworkName = 253 + 1 + 63

// isNetworkName says whether a name consists of letters, digits and the signs of names.
func isNetworkName(name string) bool {
	return len(name) <= maxNetworkName && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._/", r)
	})
}

// parseNetworkSubnets reads "10.128.0.0/16/24,fd00:128::/48".
func parseNetworkSubnets(text string) ([]world.ClusterSubnet, error) {
	list := strings.Split(text, ",")
	if len(list) > maxNetworkSubnets {
		return nil, fmt.Errorf("%d of them: %d are the most", len(list), maxNetworkSubnets)
	}
	var out []world.ClusterSubnet
	for _, one := range list {
		one = strings.TrimSpace(one)
		nodeLen := 0
		if parts := strings.Split(one, "/"); len(parts) == 3 {
			n, err := strconv.Atoi(parts[2])
			if err != nil || n == 0 {
				return nil, fmt.Errorf("%q has no length of a node's subnet", plainText(one))
			}
			one, nodeLen = parts[0]+"/"+parts[1], n
		}
		s, err := parseNetworkSubnet(one, nodeLen)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// parseNetworkSubnet reads a range; nodeLen 0 is the default of its family.
func parseNetworkSubnet(text string, nodeLen int) (world.ClusterSubnet, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() {
		return world.ClusterSubnet{}, fmt.Errorf("%q is not a range of addresses, such as 10.128.0.0/16",
			plainText(text))
	}
	if nodeLen == 0 {
		nodeLen = [...]int{24, 64}[world.FamilyOf(p.Addr())]
	}
	// A node's subnet has the network's own address, the router, the management port, pods and the broadcast address.
	if most := p.Addr().BitLen() - 3; nodeLen <= p.Bits() || nodeLen > most {
		return world.ClusterSubnet{}, fmt.Errorf("%q cannot be cut into nodes' subnets of length %d: give a hostSubnet "+
			"above the length of the range, and of at most %d, so that pods have addresses", plainText(text), nodeLen, most)
	}
	return world.ClusterSubnet{CIDR: p.Masked(), NodeLen: nodeLen}, nil
}

// parseJoin reads one range a family, or none.
func parseJoin(text string) ([]netip.Prefix, error) {
	if text == "" {
		return nil, nil
	}
	var out []netip.Prefix
	for one := range strings.SplitSeq(text, ",") {
		p, err := netip.ParsePrefix(strings.TrimSpace(one))
		if err != nil || p.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is not a range of addresses", plainText(one))
		}
		if _, twice := world.FamilyOf(p.Addr()).Of(out); twice {
			return nil, errors.New("two ranges of one family")
		}
		out = append(out, p.Masked())
	}
	return withoutDefaultJoin(out), nil
}

// withoutDefaultJoin returns join subnets, or none where they are the defaults: to name these is to name none.
func withoutDefaultJoin(list []netip.Prefix) []netip.Prefix {
	if slices.Equal(list, networks.DefaultJoin()) {
		return nil
	}
	return list
}
