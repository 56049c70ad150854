package harness

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

// Count is how much of something a node holds.
type Count struct {
	Name   string
	Number int
}

// Counts are what a node holds, by target.
func (c *Cluster) Counts(ctx context.Context, node string) ([]Count, error) {
	out, err := c.ExecIn(ctx, node, "bash", "-c", counting)
	if err != nil {
		return nil, err
	}
	var all []Count
	for line := range strings.Lines(string(out)) {
		var n Count
		if _, err := fmt.Sscan(line, &n.Name, &n.Number); err != nil {
			return nil, fmt.Errorf("count %q: %w", line, err)
		}
		all = append(all, n)
	}
	return all, nil
}
