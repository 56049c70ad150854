package nft

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/knftables"
)

// Sets are the elements of those of our sets of family inet whose names are asked for, as the kernel has them. It
// remembers nothing of it.
func (p *Plane) Sets(ctx context.Context, asked func(name string) bool) (map[string][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	names, err := p.inet.nft.List(ctx, "sets")
	if err != nil && !knftables.IsNotFound(err) {
		return nil, fmt.Errorf("list our nftables sets: %w", err)
	}
	out := map[string][]string{}
	for _, name := range names {
		if !asked(name) {
			continue
		}
		list, err := p.inet.nft.ListElements(ctx, "set", name)
		if err != nil {
			return nil, fmt.Errorf("list the nftables set %s: %w", name, err)
		}
		out[name] = nil
		for _, e := range list {
			out[name] = append(out[name], strings.Join(e.Key, " . "))
		}
	}
	return out, nil
}
