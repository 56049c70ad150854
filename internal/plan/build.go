package plan

import (
	"slices"
	"strconv"
	"strings"
)

// AddNB claims a Northbound row.
func (r *Rows) AddNB(id, parent RowID, cols Cols) { Add(&r.NB, id, Row{Parent: parent, Cols: cols}) }

// AddSet claims an address set. Members are claimed one by one with AddElem.
func (r *Rows) AddSet(id string) {
	Add(&r.NB, RowID{"Address_Set", id}, Row{Cols: Cols{"name": SetName(id)}})
}

// AddElem claims one member of an address set.
func (r *Rows) AddElem(set, addr string) { Add(&r.SetElems, SetElem{set, addr}, None{}) }

// SetName is an address set's name in OVN, where '-' and '/' are no part of names. Kubernetes names have no '_', no
// part of one begins or ends with '-', and what is between two of these is no '.' alone: so that two ids never make one
// name.
func SetName(id string) string {
	var name strings.Builder
	for i, c := range id {
		switch {
		case c == '/':
			name.WriteString("__")
		case c == '-' && strings.HasSuffix(id[:i], "-"):
			name.WriteString("._")
		case c == '-':
			name.WriteByte('_')
		default:
			name.WriteRune(c)
		}
	}
	return name.String()
}

// InSet is an address set as it stands in a match.
func InSet(id string) string { return "$" + SetName(id) }

// TablePolicy is the table of policies.
const TablePolicy = "Logical_Router_Policy"

// AddPolicy claims a policy of a network's cluster router. nexthops is empty but for reroutes.
func (r *Rows) AddPolicy(
	n Names, id string, priority int, match, action string, nexthops []string, options map[string]string,
) {
	cols := Cols{"priority": priority, "match": match, "action": action,
		"nexthops": slices.Sorted(slices.Values(nexthops)), "options": options}
	if options == nil {
		cols["options"] = map[string]string{}
	}
	r.AddNB(RowID{TablePolicy, n.Row(id)}, Router(n.ClusterRouter()), cols)
}

// AddACL claims an ACL of a switch that drops what comes in.
func (r *Rows) AddACL(id string, sw RowID, priority int, match string) {
	r.AddNB(RowID{"ACL", id}, sw, Cols{"direction": "from-lport", "priority": priority, "match": match,
		"action": "drop"})
}

// AddPortGroup claims a Port_Group. Rows of switch ports name it in Groups.
func (r *Rows) AddPortGroup(id string) RowID {
	group := RowID{"Port_Group", id}
	r.AddNB(group, RowID{}, Cols{"name": SetName(id)})
	return group
}

// AddGroupACL claims an ACL of a switch, for packets that come in by ports of a group, "from-lport", or leave by them,
// "to-lport".
func (r *Rows) AddGroupACL(id string, sw, group RowID, direction string, priority int, match, action string) {
	port := map[string]string{"from-lport": "inport", "to-lport": "outport"}[direction]
	if match != "" {
		match = " && " + match
	}
	r.AddNB(RowID{"ACL", id}, sw, Cols{"direction": direction, "priority": priority,
		"match": port + " == @" + SetName(group.Name) + match, "action": action})
}

// AddBalancedACL claims an ACL of a switch for packets that come in, after the switch has balanced Services.
func (r *Rows) AddBalancedACL(id string, sw RowID, priority int, match, action string) {
	r.AddNB(RowID{"ACL", id}, sw, Cols{"direction": "from-lport", "priority": priority, "match": match,
		"action": action, "options": map[string]string{"apply-after-lb": "true"}})
}

// Discard is the next hop of a static route that drops.
const Discard = "discard"

// AddRoute claims a static route. policy is "dst-ip" or "src-ip"; port may be "".
func (r *Rows) AddRoute(router, policy, prefix, nexthop, port string) {
	cols := Cols{"ip_prefix": prefix, "nexthop": nexthop, "policy": policy}
	if port != "" {
		cols["output_port"] = port
	}
	r.AddNB(RowID{"Logical_Router_Static_Route", router + "/" + policy + "/" + prefix + "/" + nexthop}, Router(router),
		cols)
}

// AddMACBinding claims that a router sends what has an address beyond one of its ports as next hop to a hardware
// address, without asking there.
func (r *Rows) AddMACBinding(port, ip, mac string) {
	r.AddNB(RowID{"Static_MAC_Binding", port + "/" + ip}, RowID{}, Cols{
		"logical_port": port, "ip": ip, "mac": mac, "override_dynamic_mac": true,
	})
}

// AddPeers claims a router port and the switch port it is plugged into. routerOpts and switchOpts are further options.
func (r *Rows) AddPeers(router, routerPort, sw, switchPort, mac string, networks []string, routerOpts,
	switchOpts map[string]string) {
	r.AddNB(RowID{"Logical_Router_Port", routerPort}, Router(router), Cols{
		"name": routerPort, "mac": mac, "networks": slices.Sorted(slices.Values(networks)),
		"options": mergePairs(routerOpts),
	})
	r.AddNB(RowID{"Logical_Switch_Port", switchPort}, Switch(sw), Cols{
		"name": switchPort, "type": "router", "addresses": []string{"router"},
		"options": mergePairs(switchOpts, "router-port", routerPort),
	})
}

// mergePairs is m with further pairs, and never nil.
func mergePairs(m map[string]string, kv ...string) map[string]string {
	out := make(map[string]string, len(m)+len(kv)/2)
	for k, v := range m {
		out[k] = v
	}
	for i := 0; i < len(kv); i += 2 {
		out[kv[i]] = kv[i+1]
	}
	return out
}

// AddFlow claims an OpenFlow flow of the gateway bridge.
func (r *Rows) AddFlow(bridge string, at Stage, match, actions string) {
	Add(&r.Flows, at.Flow(bridge, match), actions)
}

// Pairs is "k=v,k=v" sorted by key: a comparable map.
func Pairs(kv ...string) string {
	var out []string
	for i := 0; i < len(kv); i += 2 {
		out = append(out, kv[i]+"="+kv[i+1])
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// Itoa keeps marks and keys, which OVN stores as text, short to write.
func Itoa(n int) string { return strconv.Itoa(n) }
