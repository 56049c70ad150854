package trace_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// policy is a row that the tracer knows, with other columns.
func policyWith(cols plan.Cols) plan.Row {
	all := plan.Cols{"priority": 7, "match": "ip4.src == 10.244.1.10", "action": "drop", "nexthops": []string(nil),
		"options": map[string]string{}}
	maps.Copy(all, cols)
	return plan.Row{Parent: plan.Router(plan.DefaultNames().ClusterRouter()), Cols: all}
}

// TestRefusesUnknownRows: a row that may change where a packet goes in a way that the tracer does not know makes the
// plan unreadable, and the error says which row and what of it.
func TestRefusesUnknownRows(t *testing.T) {
	own, join := plan.Switch("n1"), plan.Switch("join")
	group := plan.Group(plan.DefaultNames().ServiceLBGroup())
	gr := plan.Router(plan.DefaultNames().GatewayRouter("n1"))
	drop := plan.Cols{"direction": "from-lport", "priority": 1, "match": "ct.trk", "action": "drop"}
	for _, x := range []struct {
		name, table string
		row         plan.Row
		want        []string
	}{
		{"table", "Mirror", plan.Row{Cols: plan.Cols{"name": "m"}}, []string{"Mirror"}},
		{"column", "Logical_Router_Policy", policyWith(plan.Cols{"chain": "c"}), []string{"chain=c"}},
		{"option", "Logical_Router_Policy", policyWith(plan.Cols{"options": map[string]string{"label": "3"}}),
			[]string{"options:label=3"}},
		{"action", "Logical_Router_Policy", policyWith(plan.Cols{"action": "jump"}), []string{"action=jump"}},
		{"mark", "Logical_Router_Policy", policyWith(plan.Cols{"options": map[string]string{"pkt_mark": "a"}}),
			[]string{"options:pkt_mark=a"}},
		{"next hop", "Logical_Router_Policy", policyWith(plan.Cols{"nexthops": []string{"discard"}}),
			[]string{`"discard"`}},
		{"field", "Logical_Router_Policy", policyWith(plan.Cols{"match": "ip4.ttl == 3"}),
			[]string{`"ip4.ttl == 3"`, `unknown field "ip4.ttl"`}},
		{"operator", "Logical_Router_Policy", policyWith(plan.Cols{"match": "tcp.dst < 3"}),
			[]string{`"tcp.dst < 3"`, `unknown operator "<"`}},
		{"character", "Logical_Router_Policy", policyWith(plan.Cols{"match": "ct.trk & ct.rpl"}),
			[]string{`"ct.trk & ct.rpl"`}},
		{"constant", "Logical_Router_Policy", policyWith(plan.Cols{"match": "ip4.src == {10.0.0.1, web}"}),
			[]string{`web`}},
		{"end of list", "Logical_Router_Policy", policyWith(plan.Cols{"match": "ip4.src == {10.0.0.1"}),
			[]string{"ip4.src == {10.0.0.1"}},
		{"address set", "Logical_Router_Policy", policyWith(plan.Cols{"match": "ip4.src == $absent"}),
			[]string{"no address set absent"}},
		{"port group", "Logical_Router_Policy", policyWith(plan.Cols{"match": "inport == @absent"}),
			[]string{"no port group absent"}},
		{"group of a port", "Logical_Switch_Port", plan.Row{Parent: own, Cols: plan.Cols{"name": "x"},
			Groups: []plan.RowID{{Table: "Port_Group", Name: "absent"}}}, []string{"no row Port_Group/absent"}},
		{"ACL that allows", "ACL", plan.Row{Parent: own, Cols: plan.Cols{"direction": "from-lport", "priority": 1,
			"match": "", "action": "allow-related"}}, []string{"action=allow-related"}},
		{"ACL for connections", "ACL", plan.Row{Parent: own, Cols: plan.Cols{"direction": "to-lport", "priority": 1,
			"match": "", "action": "allow-related"}}, []string{"action=allow-related"}},
		{"ACL of another switch", "ACL", plan.Row{Parent: join, Cols: drop}, []string{"Logical_Switch/join"}},
		{"bandwidth", "QoS", plan.Row{Parent: own, Cols: plan.Cols{"direction": "from-lport", "priority": 1,
			"match": "ct.trk", "bandwidth": map[string]string{"rate": "5"}}}, []string{"bandwidth:rate=5"}},
		{"DNAT", "NAT", plan.Row{Parent: gr, Cols: plan.Cols{"type": "dnat_and_snat", "external_ip": "1.2.3.4",
			"logical_ip": "10.244.1.10"}}, []string{"type=dnat_and_snat"}},
		{"route to nowhere", "Logical_Router_Static_Route", plan.Row{Parent: gr, Cols: plan.Cols{
			"ip_prefix": "10.9.0.0/16", "nexthop": "nowhere", "policy": "dst-ip"}}, []string{`"nowhere"`}},
		{"backend", "Load_Balancer", plan.Row{Parent: group, Cols: plan.Cols{"protocol": "tcp",
			"vips": map[string]string{"10.96.0.9:80": "web:80"}}}, []string{`"web:80"`}},
		{"type of port", "Logical_Switch_Port", plan.Row{Parent: own, Cols: plan.Cols{"name": "x", "type": "vtep"}},
			[]string{"type=vtep"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			net := newCluster(world.SharedGateway).plans()
			net["n1"].NB.Put(plan.Owner{}, plan.RowID{Table: x.table, Name: "x"}, x.row)
			unread(t, net, append(x.want, "n1", x.table+"/x")...)
		})
	}
	t.Run("Southbound", func(t *testing.T) {
		net := newCluster(world.SharedGateway).plans()
		net["n1"].SB.Put(plan.Owner{}, plan.RowID{Table: "Port_Binding", Name: "x"}, plan.Row{})
		unread(t, net, "sb Port_Binding/x")
	})
	t.Run("member", func(t *testing.T) {
		net := newCluster(world.SharedGateway).plans()
		net["n1"].SetElems.Put(plan.Owner{}, plan.SetElem{Set: "node-ips.v4", Addr: "web"}, plan.None{})
		unread(t, net, "set node-ips.v4", `"web"`)
	})
}

// TestRefusesUnknownFlows: the same for flows of the gateway bridge.
func TestRefusesUnknownFlows(t *testing.T) {
	const uplink = "in_port={eth0}"
	for match, list := range map[string]string{
		"ip,nw_tos=4": "drop", "gre": "drop", "ip,nw_src=web": "drop",
		"dl_dst=02:00:00:00:00:00/ff:00:00:00:00:00": "drop",
		"ip,ct_state=+trk+inv":                       "drop", "ip,ct_state=trk": "drop", "ip,pkt_mark=0x1/mask": "drop",
		uplink + ",tcp": "set_field:5->reg2", uplink + ",udp": "output:5", uplink + ",sctp": "group:1",
		uplink + ",tcp6": "resubmit(1,2)", uplink + ",udp6": "ct(zone=5)",
		uplink + ",ip":    "multipath(eth_src,0,hrw,2,0,NXM_NX_REG0[0..15])",
		uplink + ",sctp6": "ct(zone=64000,nat(dst=1.2.3.4))",
	} {
		t.Run(match, func(t *testing.T) {
			net := newCluster(world.SharedGateway).plans()
			net["n1"].Flows.Put(plan.Owner{}, plan.Flow{Bridge: "breth0", Table: 1, Priority: 7, Match: match}, list)
			unread(t, net, "n1", "flow breth0 table=1,priority=7,"+match, "actions="+list)
		})
	}
	net := newCluster(world.SharedGateway).plans()
	net["n1"].Flows.Put(plan.Owner{}, plan.Flow{Bridge: "breth0", Match: "in_port={eth7}"}, "drop")
	unread(t, net, "flows of several uplinks: [{eth0} {eth7}]")
}

// chains are base and other chains, by name.
type chains map[string]plan.NFTChainSpec

// TestRefusesUnknownNFT: the same for the host's nftables.
func TestRefusesUnknownNFT(t *testing.T) {
	forward := plan.NFTChainSpec{Type: "filter", Hook: "forward", Priority: "5"}
	for _, x := range []struct {
		name   string
		chains chains
		rule   string
		want   string
	}{
		{"statement", chains{"c": forward}, "queue num 1", `"queue"`},
		{"option of a statement", chains{"c": forward}, "masquerade random", `"random"`},
		{"field", chains{"c": forward}, "ip ttl 5 drop", `"ttl"`},
		{"key of meta", chains{"c": forward}, "meta skuid 0 drop", `"meta"`},
		{"key of ct", chains{"c": forward}, "ct label 0x1 drop", `"ct label"`},
		{"value", chains{"c": forward}, "ct state related drop", `"related"`},
		{"operator", chains{"c": forward}, "th dport > 5 drop", `">"`},
		{"mask", chains{"c": forward}, "ip saddr & 1 10.0.0.1 drop", "unknown mask"},
		{"list without end", chains{"c": forward}, "meta l4proto { tcp, udp drop", `"drop"`},
		{"reject", chains{"c": forward}, "reject with icmp port-unreachable", `"with"`},
		{"map", chains{"c": forward}, "dnat ip to 10.0.0.1", `"dnat"`},
		{"set", chains{"c": forward}, "ip saddr @absent drop", "no set @absent"},
		{"chain", chains{"c": forward}, "jump absent", "no chain absent"},
		{"chain of a rule", chains{}, "drop", "no such chain"},
		{"hook", chains{"c": {Type: "filter", Hook: "egress", Priority: "0"}}, "", `hook "egress"`},
		{"type", chains{"c": {Type: "route", Hook: "output", Priority: "0"}}, "", `type "route"`},
		{"type at a hook", chains{"c": {Type: "nat", Hook: "forward", Priority: "0"}}, "", `type "nat"`},
		{"priority", chains{"c": {Type: "filter", Hook: "forward", Priority: "late"}}, "", `priority "late"`},
		{"policy", chains{"c": {Type: "filter", Hook: "forward", Priority: "1", Policy: "queue"}}, "",
			`policy "queue"`},
		{"order", chains{"c": forward, "d": {Type: "filter", Hook: "forward", Priority: "filter + 5"}}, "",
			"inet c and inet d have the same priority at the hook forward"},
		{"order of translation", chains{"c": {Type: "filter", Hook: "postrouting", Priority: "srcnat"}}, "",
			"have the same priority at the hook postrouting"},
	} {
		t.Run(x.name, func(t *testing.T) {
			net := newCluster(world.SharedGateway).plans()
			for name, spec := range x.chains {
				net["n1"].NFTChains.Put(plan.Owner{}, plan.NFTChain{Family: "inet", Name: name}, spec)
			}
			if x.rule != "" {
				id := plan.NFTRule{Chain: plan.NFTChain{Family: "inet", Name: "c"}, Name: "r"}
				net["n1"].NFTRules.Put(plan.Owner{}, id, x.rule)
				unread(t, net, "nft rule inet c [r] "+x.rule)
			}
			unread(t, net, "n1", "nft ", x.want)
		})
	}
	net := newCluster(world.SharedGateway).plans()
	net["n1"].NFTElems.Put(plan.Owner{}, plan.NFTElem{Set: "services/2-all/one.v4", Key: "10.96.0.9 . tcp . 80"}, "web")
	unread(t, net, "nft elem services/2-all/one.v4 10.96.0.9 . tcp . 80")
}

// unread says that plans are not read, with an error that has all these words.
func unread(t *testing.T, net trace.Network, want ...string) {
	t.Helper()
	_, err := trace.Read(net)
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v, want %q", err, w)
		}
	}
}
