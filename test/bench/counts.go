package main

import (
	"context"
	"fmt"
	"strings"
)

// counting prints "name number" lines: what a node holds, by target.
const counting = `
for t in Logical_Router_Policy NAT QoS Logical_Router_Static_Route Address_Set Logical_Switch_Port Load_Balancer; do
	echo "nb-$t $(ovn-nbctl --no-headings --bare --columns=_uuid list "$t" | grep -c .)"
done
echo "sb-Logical_Flow $(ovn-sbctl --no-headings --bare --columns=_uuid list Logical_Flow | grep -c .)"
for b in br-int breth0; do
	echo "flows-$b $(ovs-ofctl dump-aggregate "$b" | sed 's/.*flow_count=//')"
done
echo "nft-rules $(nft -a list ruleset | grep -v -E '^[[:space:]]*(table|chain|set|map) ' | grep -c '# handle')"
echo "ip-rules $(( $(ip -4 rule | wc -l) + $(ip -6 rule | wc -l) ))"
echo "set-elements $(ovn-nbctl --no-headings --bare --columns=addresses list Address_Set | wc -w)"
`

type count struct {
	name   string
	number int
}

func (c *cluster) counts(ctx context.Context, node string) ([]count, error) {
	out, err := c.ExecIn(ctx, node, "bash", "-c", counting)
	if err != nil {
		return nil, err
	}
	var all []count
	for line := range strings.Lines(string(out)) {
		var n count
		if _, err := fmt.Sscan(line, &n.name, &n.number); err != nil {
			return nil, fmt.Errorf("count %q: %w", line, err)
		}
		all = append(all, n)
	}
	return all, nil
}
