package nft

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
)

// Packets is how many packets have met each rule of ours with a counter in a chain of family inet, by the rule's name.
// A rule that is written again counts from 0.
func Packets(ctx context.Context, chain string) (map[string]uint64, error) {
	// knftables v0.0.22 leaves counters out of what it lists.
	out, err := exec.CommandContext(ctx, "nft", "--json", "list", "chain", "inet", TableName, chain).Output()
	if err != nil {
		return nil, fmt.Errorf("read the counters of nftables chain %s, does it exist? %w", chain, err)
	}
	var listed struct {
		Nftables []struct {
			Rule *struct {
				Comment string
				Expr    []struct{ Counter *struct{ Packets uint64 } }
			}
		}
	}
	if err := json.Unmarshal(out, &listed); err != nil {
		return nil, fmt.Errorf("read the counters of nftables chain %s: %w", chain, err)
	}
	packets := map[string]uint64{}
	for _, o := range listed.Nftables {
		if o.Rule == nil {
			continue
		}
		name, _, ours := parseRuleComment(o.Rule.Comment)
		for _, e := range o.Rule.Expr {
			if ours && e.Counter != nil {
				packets[name] += e.Counter.Packets
			}
		}
	}
	return packets, nil
}
