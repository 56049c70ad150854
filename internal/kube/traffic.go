package kube

import (
	"fmt"
	"net/netip"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/world"
)

// Traffic is an EgressIPTraffic as the world has it. An entry that is not a network is left out, and is a problem of
// the object: the CRD rejects it, except in objects that were stored before.
func Traffic(o *v1.EgressIPTraffic) *world.Traffic {
	t := &world.Traffic{Name: o.Name, Labels: o.Labels, Created: o.CreationTimestamp.Time}
	note := func(format string, args ...any) {
		if len(t.Problems) < maxTrafficProblems {
			t.Problems = append(t.Problems, plainText(fmt.Sprintf(format, args...)))
		}
	}
	list, err := atMost(o.Spec.DestinationNetworks, maxNetworks)
	if err != nil {
		note("spec.destinationNetworks: %v: spread them over several objects", err)
	}
	var all []netip.Prefix
	for i, text := range list {
		p, err := parsePrefix(string(text))
		if err != nil {
			note("spec.destinationNetworks[%d]: %q is not a network: write one such as 10.0.0.0/8 or fd00:20::/64", i,
				plainText(string(text)))
			continue
		}
		all = append(all, p)
	}
	t.Networks = destinations.Of(all...)
	return t
}
