package forward

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// Dropping says which chains of the host's forwarding, in nftables' tables of others, drop what they do not accept of
// these families (ip, ip6), and have no rule about a device: one sentence each, with what to do. An accept of ours, in
// another chain, overrules none of them. FORWARD of iptables is left out: there are our rules.
func Dropping(ctx context.Context, dev string, families ...string) ([]string, error) {
	list, err := runNFT(ctx, "--json", "list", "chains")
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	chains, err := parseForwardChains(list, families)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, c := range chains {
		text, err := runNFT(ctx, "--stateless", "list", "table", c.Family, c.Table)
		if err != nil {
			return nil, err
		}
		if c.dropsByDefault(text) && !strings.Contains(text, fmt.Sprintf("%q", dev)) {
			out = append(out, c.problemText(dev))
		}
	}
	slices.Sort(out)
	return out, nil
}

func runNFT(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "nft", args...).Output()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		err = fmt.Errorf("nft %s: %w", strings.Join(args, " "), err)
	}
	return string(out), err
}

// baseChain is a chain as libnftables-json(5) has it.
type baseChain struct{ Family, Table, Name, Type, Hook, Policy string }

// ownTable is the name of our tables.
const ownTable = "egret"

// parseForwardChains reads which chains of others filter what the host forwards of these families.
func parseForwardChains(list string, families []string) ([]baseChain, error) {
	var all struct{ Nftables []struct{ Chain *baseChain } }
	if err := json.Unmarshal([]byte(list), &all); err != nil {
		return nil, fmt.Errorf("read the chains of nftables: %w", err)
	}
	var out []baseChain
	for _, o := range all.Nftables {
		c := o.Chain
		if c == nil || c.Hook != "forward" || c.Type != "filter" || c.Table == ownTable || c.ofIPTables() {
			continue
		}
		if c.Family == "inet" || slices.Contains(families, c.Family) {
			out = append(out, *c)
		}
	}
	return out, nil
}

func (c baseChain) ofIPTables() bool {
	return c.Family != "inet" && c.Table == "filter" && c.Name == "FORWARD"
}

// lastRule is a rule that ends a chain for whatever comes to it.
var lastRule = regexp.MustCompile(`^(counter )?(log( \S+ (".*?"|\S+))* )?(drop|reject.*?)( comment ".*")?$`)

// dropsByDefault says whether a packet that no rule accepts is dropped: by the policy, or by the last rule.
func (c baseChain) dropsByDefault(table string) bool {
	if c.Policy == "drop" {
		return true
	}
	_, body, _ := strings.Cut(table, "\n\tchain "+c.Name+" {\n")
	body, _, _ = strings.Cut(body, "\n\t}")
	rules := strings.Split(body, "\n")
	return lastRule.MatchString(strings.TrimSpace(rules[len(rules)-1]))
}

func (c baseChain) problemText(dev string) string {
	do := fmt.Sprintf("nft insert rule %[1]s %[2]s %[3]s iifname %[4]s accept, and the same with oifname",
		c.Family, c.Table, c.Name, dev)
	if c.Table == "firewalld" {
		do = fmt.Sprintf("firewall-cmd --permanent --zone=trusted --add-interface=%s, and --reload", dev)
	}
	return fmt.Sprintf("chain %s of nftables table %s %s drops what it does not accept, and has no rule about %s: "+
		"what this host forwards to and from pods is lost; have it pass (%s)", c.Name, c.Family, c.Table, dev, do)
}
