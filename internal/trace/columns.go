package trace

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// knownColumns are, by table, the columns that the tracer understands, and with "column:key" the options; with the
// values that it understands, or nil where it reads them or where no value changes the way of a packet: names, tunnel
// keys, and what concerns ARP, ND or packets that are too big. A column that is absent here makes a plan unreadable.
var knownColumns = map[string]map[string][]string{
	"NB_Global": {"name": nil, "options:name": nil, "options:use_ct_inv_match": nil}, // nothing walked is invalid
	"Logical_Router": {"name": nil, "load_balancer_group": nil, "options:chassis": nil,
		"options:lb_force_snat_ip": {"router_ip"}, "options:always_learn_from_arp_request": nil,
		"options:mac_binding_age_threshold": nil, "copp": nil},
	// These bound what goes to ovn-controller beside the way of a packet.
	"Copp":           {"name": nil, "meters": nil},
	"Meter":          {"name": nil, "unit": nil, "fair": nil},
	"Meter_Band":     {"action": nil, "rate": nil, "burst_size": nil},
	"Logical_Switch": {"name": nil, "load_balancer_group": nil, "other_config:requested-tnl-key": nil, "copp": nil},
	"Logical_Switch_Port": {"name": nil, "type": {"router", "localnet", "remote"}, "addresses": nil,
		"port_security": nil, "options:router-port": nil, "options:requested-chassis": nil, "options:iface-id-ver": nil,
		"options:requested-tnl-key": nil, "options:network_name": nil, "options:nat-addresses": nil,
		"options:exclude-lb-vips-from-garp": nil},
	"Logical_Router_Port": {"name": nil, "mac": nil, "networks": nil, "options:gateway_mtu": nil,
		"options:requested-tnl-key": nil},
	"Logical_Router_Policy": {"priority": nil, "match": nil, "action": {"allow", "drop", "reroute"}, "nexthops": nil,
		"options:pkt_mark": nil},
	"Logical_Router_Static_Route": {"ip_prefix": nil, "nexthop": nil, "policy": {"dst-ip", "src-ip"},
		"output_port": nil},
	"Static_MAC_Binding": {"logical_port": nil, "ip": nil, "mac": nil, "override_dynamic_mac": {"true"}},
	"NAT": {"type": {"snat"}, "external_ip": nil, "logical_ip": nil, "match": nil, "priority": nil,
		"external_port_range": nil},
	"ACL": {"direction": {"from-lport", "to-lport"}, "priority": nil, "match": nil,
		"action": {"drop", "reject", "allow"}, "options:apply-after-lb": {"true"}},
	"QoS":                 {"direction": {"from-lport"}, "priority": nil, "match": nil, "action:mark": nil},
	"Address_Set":         {"name": nil},
	"Port_Group":          {"name": nil},
	"Load_Balancer_Group": {"name": nil},
	"Load_Balancer": {"name": nil, "protocol": {"tcp", "udp", "sctp"}, "vips": nil, "options:event": {"false"},
		"options:reject": {"true"}, "options:skip_snat": {"true", "false"}, "options:neighbor_responder": nil,
		"options:hairpin_snat_ip": nil, "options:ct_flush": nil, "options:affinity_timeout": nil,
		"selection_fields": nil}, // which backend, not whether
	"Chassis": {"name": nil, "hostname": nil, "other_config:is-remote": nil},
	"Encap":   {"type": {"geneve"}, "ip": nil, "chassis_name": nil, "options:csum": nil},
}

// checkColumns says which column or option of a row the tracer does not know. Labels are external_ids.
func checkColumns(id plan.RowID, row plan.Row) error {
	known, is := knownColumns[id.Table]
	if !is {
		return fmt.Errorf("the tracer does not know the table %s", id.Table)
	}
	for col, value := range row.Cols {
		if col == "external_ids" {
			continue
		}
		values, is := known[col]
		if is && values == nil {
			continue
		}
		if is || !isOptions(value) {
			if err := checkValue(known, col, fmt.Sprint(value)); err != nil {
				return err
			}
			continue
		}
		for key, option := range value.(map[string]string) {
			if err := checkValue(known, col+":"+key, option); err != nil {
				return err
			}
		}
	}
	return nil
}

func isOptions(value any) bool { _, is := value.(map[string]string); return is }

func checkValue(known map[string][]string, col, value string) error {
	values, is := known[col]
	if !is || values != nil && !slices.Contains(values, value) {
		return fmt.Errorf("the tracer does not know %s=%s", col, value)
	}
	return nil
}

// cells take a row's columns apart. err is the first that is not what it should be.
type cells struct {
	cols plan.Cols
	err  error
}

func (c *cells) textOf(col string) string {
	s, _ := c.cols[col].(string)
	return s
}

func (c *cells) listOf(col string) []string {
	l, _ := c.cols[col].([]string)
	return l
}

func (c *cells) optionsOf(col string) map[string]string {
	m, _ := c.cols[col].(map[string]string)
	return m
}

// balancerGroups are the names of the load balancer groups that a router or a switch refers to.
func (c *cells) balancerGroups() []string {
	var out []string
	ids, _ := c.cols["load_balancer_group"].([]plan.RowID)
	for _, id := range ids {
		out = append(out, id.Name)
	}
	return out
}

func (c *cells) rowPriority() int {
	n, _ := c.cols["priority"].(int)
	return n
}

// packetMark returns the packet mark of an option, 0 without one.
func (c *cells) packetMark(col, key string) int {
	text := c.optionsOf(col)[key]
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	c.noteError(err, "%s:%s=%s", col, key, text)
	return n
}

func (c *cells) parseAddr(text string) netip.Addr {
	a, err := netip.ParseAddr(text)
	c.noteError(err, "address %q", text)
	return a
}

func (c *cells) parsePrefix(text string) netip.Prefix {
	p, err := netip.ParsePrefix(text)
	c.noteError(err, "prefix %q", text)
	return p
}

func (c *cells) addrPort(text string) netip.AddrPort {
	a, err := netip.ParseAddrPort(text)
	c.noteError(err, "address and port %q", text)
	return a
}

// portAddresses reads a column of switch ports: "0a:58:… 10.244.1.5 fd00::5", or a word for all that is dynamic.
func (c *cells) portAddresses(col string) []netip.Addr {
	var out []netip.Addr
	for _, entry := range c.listOf(col) {
		if entry == "router" || entry == "unknown" {
			continue
		}
		words := strings.Fields(entry)
		for _, word := range words[min(1, len(words)):] {
			p, err := parsePrefix(word) // a port of the transit switch has prefixes
			c.noteError(err, "address %q", word)
			out = append(out, p.Addr())
		}
	}
	return out
}

func (c *cells) noteError(err error, format string, args ...any) {
	if err != nil && c.err == nil {
		c.err = fmt.Errorf("the tracer cannot read "+format, args...)
	}
}
