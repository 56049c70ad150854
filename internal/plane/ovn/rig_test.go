package ovn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovn/ovntest"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// proxy stands between a plane and its database: it counts transactions, and can cut the line after the next one.
type proxy struct {
	path, server string
	txns         atomic.Int64
	cut          atomic.Bool
	mu           sync.Mutex
	last         []byte // the last transaction's text
}

func newProxy(t *testing.T, endpoint string) *proxy {
	p := &proxy{path: filepath.Join(filepath.Dir(strings.TrimPrefix(endpoint, "unix:")), "proxy"),
		server: strings.TrimPrefix(endpoint, "unix:")}
	l, err := net.Listen("unix", p.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(client)
		}
	}()
	return p
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		defer client.Close()
		_, _ = io.Copy(client, server)
	}()
	for dec := json.NewDecoder(client); ; {
		var msg json.RawMessage
		if dec.Decode(&msg) != nil {
			return
		}
		txn := bytes.Contains(msg, []byte(`"method":"transact"`))
		if txn {
			p.txns.Add(1)
			p.mu.Lock()
			p.last = msg
			p.mu.Unlock()
		}
		if txn && p.cut.Swap(false) {
			client.Close() // the database commits, the plane never learns of it
		}
		_, _ = server.Write(msg)
	}
}

// dump prints rows of a database in the plan's text form, by reading it with ovsdb-client: the plane has no part in it.
type dumper struct {
	env          *ovntest.Env
	endpoint, db string
	tables       []string
}

type rawRow map[string]any

func (d dumper) read(t *testing.T) map[string]map[string]rawRow {
	t.Helper()
	all := map[string]map[string]rawRow{}
	for _, table := range d.tables {
		var res []struct{ Rows []rawRow }
		if err := json.Unmarshal([]byte(d.env.Select(d.endpoint, d.db, table)), &res); err != nil {
			t.Fatal(err)
		}
		all[table] = map[string]rawRow{}
		for _, r := range res[0].Rows {
			all[table][r["_uuid"].([]any)[1].(string)] = r
		}
	}
	return all
}

// ours prints the rows that carry a mark, or whose name does; not-ours the rest.
func (d dumper) dump(t *testing.T, ours bool, show map[string][]string) string {
	all := d.read(t)
	var lines []string
	for table, rows := range all {
		for uuid, r := range rows {
			name, mine := identity(all, table, uuid, r)
			if mine == ours && table != "NB_Global" {
				lines = append(lines, table+"/"+name+parentText(all, table, uuid)+colsText(all, r, show[table]))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func identity(all map[string]map[string]rawRow, table, uuid string, r rawRow) (string, bool) {
	switch table {
	case "Load_Balancer_Group":
		n := r["name"].(string)
		return n, strings.HasPrefix(n, "egret-")
	case "Encap":
		for _, c := range all["Chassis"] {
			if slices.Contains(atoms(c["encaps"]), uuid) {
				return fmt.Sprint(r["type"], " ", r["ip"]),
					textMap(c["external_ids"])["k8s.ovn.org/owner-controller"] == "egret"
			}
		}
	}
	ids := textMap(r["external_ids"])
	if ids["k8s.ovn.org/owner-controller"] == "egret" {
		return ids["k8s.ovn.org/id"], true
	}
	return fmt.Sprint(r["name"]), false
}

func parentText(all map[string]map[string]rawRow, table, uuid string) string {
	for pt, rows := range all {
		for pu, p := range rows {
			for col, v := range p {
				if strings.HasPrefix(col, "_") || col == "load_balancer_group" || !slices.Contains(atoms(v), uuid) ||
					pt == table {
					continue
				}
				name, _ := identity(all, pt, pu, p)
				return " in " + pt + "/" + name
			}
		}
	}
	return ""
}

func colsText(all map[string]map[string]rawRow, r rawRow, cols []string) string {
	var b strings.Builder
	for _, c := range cols {
		if kv := textMap(r[c]); kv != nil {
			fmt.Fprintf(&b, " %s=%v", c, kv)
			continue
		}
		var set []string
		for _, a := range atoms(r[c]) {
			for _, rows := range all {
				if ref, ok := rows[a]; ok {
					a = fmt.Sprint(ref["name"])
				}
			}
			set = append(set, a)
		}
		slices.Sort(set)
		fmt.Fprintf(&b, " %s=%v", c, set)
	}
	return b.String()
}

func atoms(v any) []string {
	list, ok := v.([]any)
	if !ok {
		return []string{fmt.Sprint(v)}
	}
	if list[0] == "map" {
		return nil
	}
	if list[0] == "uuid" {
		return []string{list[1].(string)}
	}
	var out []string
	for _, a := range list[1].([]any) {
		out = append(out, atoms(a)...)
	}
	return out
}

func textMap(v any) map[string]string {
	list, ok := v.([]any)
	if !ok || list[0] != "map" {
		return nil
	}
	m := map[string]string{}
	for _, p := range list[1].([]any) {
		kv := p.([]any)
		m[fmt.Sprint(kv[0])] = fmt.Sprint(kv[1])
	}
	return m
}

// stateText is what dump must print when the database holds rows. Marks are added, addresses put into their sets.
func stateText(rows plan.Table[plan.RowID, plan.Row], elems plan.Table[plan.SetElem, plan.None],
	show map[string][]string, names func(plan.RowID) string) string {
	var lines []string
	for id, r := range rows.Rows() {
		if id.Table == "NB_Global" {
			continue
		}
		line := id.Table + "/" + names(id)
		if r.Parent != (plan.RowID{}) {
			line += " in " + r.Parent.Table + "/" + names(r.Parent)
		}
		for _, c := range show[id.Table] {
			line += " " + c + "=" + wantedText(id, r, c, elems, names)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func wantedText(id plan.RowID, r plan.Row, c string, elems plan.Table[plan.SetElem, plan.None],
	names func(plan.RowID) string) string {
	set := []string{}
	switch x := r.Cols[c].(type) {
	case map[string]string:
		if c == "external_ids" {
			x = map[string]string{keyID: id.Name, keyOwner: owner, "note": x["note"]}
		}
		return fmt.Sprint(x)
	case []string:
		set = append(set, x...)
	case []plan.RowID:
		for _, ref := range x {
			set = append(set, names(ref))
		}
	case nil:
		switch c {
		case "external_ids":
			return fmt.Sprint(map[string]string{keyID: id.Name, keyOwner: owner})
		case "options", "other_config":
			return "map[]"
		case "addresses":
			for e := range elems.Rows() {
				if e.Set == id.Name {
					set = append(set, e.Addr)
				}
			}
		}
	default:
		set = append(set, fmt.Sprint(x))
	}
	slices.Sort(set)
	return fmt.Sprint(set)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// inOneTransaction: the Northbound changes as a whole.
func inOneTransaction(string) bool { return true }

func nbRig(t *testing.T) *planetest.Rig {
	env := ovntest.Start(t)
	p := newProxy(t, env.NB)
	d := dumper{env, env.NB, dbNorth, []string{"Logical_Switch", "Logical_Switch_Port", "Logical_Router",
		"Logical_Router_Policy", "Logical_Router_Static_Route", "NAT", "QoS", "Address_Set", "Load_Balancer",
		"Load_Balancer_Group", "NB_Global", "Copp", "Meter", "Meter_Band"}}
	names := func(id plan.RowID) string {
		if id.Table == tableGroup {
			return groupMark + id.Name
		}
		return id.Name
	}
	bad := nbStateA()
	bad.NB.Put(planetest.Owner("eip/bad"),
		plan.RowID{Table: "Logical_Router_Policy", Name: "bad"}, plan.Row{Parent: routerID,
			Cols: plan.Cols{"priority": 100, "match": "ip4", "action": "bounce"}})
	return &planetest.Rig{
		GivesWay: inOneTransaction,
		New: func(t *testing.T) plane.Plane {
			pl := NewNB("unix:"+p.path, Options{Hold: -1, Log: quiet()})
			t.Cleanup(pl.Close)
			return pl
		},
		A: nbStateA(), B: nbStateB(),
		Dump: func(t *testing.T) string { return d.dump(t, true, nbShow) },
		Text: func(s *plan.State) string { return stateText(s.NB, s.SetElems, nbShow, names) },
		PutForeign: func(t *testing.T) {
			env.NBCtl("--may-exist", "ls-add", "theirs", "--", "--may-exist", "lsp-add", "theirs", "theirport", "--",
				"lsp-set-options", "theirport", "a=b",
				"--", "--may-exist", "lr-add", "theirrouter", "--", "--may-exist", "lr-policy-add", "theirrouter",
				"100", "ip4.src == 10.0.0.9", "drop")
			env.NBCtl("create", "Address_Set", "name=theirset", "addresses=10.9.9.9",
				"external_ids:k8s.ovn.org/owner-controller=other", "external_ids:k8s.ovn.org/id=set")
			env.NBCtl("lb-add", "theirlb", "10.96.0.1:80", "10.0.0.1:80")
			env.NBCtl("create", "Load_Balancer_Group", "name=theirgroup")
			env.NBCtl("set", "NB_Global", ".", "options:theirs=1")
		},
		DumpForeign: func(t *testing.T) string {
			return d.dump(t, false, nbShow) + env.NBCtl("get", "NB_Global", ".", "options:theirs")
		},
		DeleteOurs: func(t *testing.T) { env.NBCtl("lr-policy-del", "router") },
		Monitored:  true,
		Writes:     func() int { return int(p.txns.Load()) },
		FailOnce:   func(*testing.T) { p.cut.Store(true) },
		Bad:        bad, BadOwner: planetest.Owner("eip/bad"), Hostile: hostileNB(),
	}
}

var (
	switchID = plan.RowID{Table: "Logical_Switch", Name: "switch"}
	routerID = plan.RowID{Table: "Logical_Router", Name: "router"}
	groupID  = plan.RowID{Table: tableGroup, Name: "group"}
	nbShow   = map[string][]string{
		"Logical_Switch":        {"name", "other_config", "external_ids", "load_balancer_group"},
		"Logical_Switch_Port":   {"name", "addresses", "options", "type", "external_ids"},
		"Logical_Router":        {"name", "options", "external_ids"},
		"Logical_Router_Policy": {"priority", "match", "action", "nexthops", "external_ids"},
		"NAT":                   {"type", "external_ip", "logical_ip", "match"},
		"QoS":                   {"priority", "match", "direction", "action"},
		"Address_Set":           {"name", "addresses"},
		"Load_Balancer":         {"name", "vips", "protocol"},
		"Load_Balancer_Group":   {"name"},
		"Copp":                  {"name", "meters"},
		"Meter":                 {"name", "unit", "fair"},
		"Meter_Band":            {"action", "rate", "burst_size"},
	}
)

func put(s *plan.State, table, name string, parent plan.RowID, cols plan.Cols) {
	s.NB.Put(planetest.Owner("zone/n1"), plan.RowID{Table: table, Name: name}, plan.Row{Parent: parent, Cols: cols})
}

func nbCommon(s *plan.State) {
	put(s, "NB_Global", "", plan.RowID{}, plan.Cols{"name": "n1",
		"options": map[string]string{"use_logical_dp_groups": "true"}})
	put(s, "Logical_Switch", "switch", plan.RowID{}, plan.Cols{"name": "switch",
		"load_balancer_group": []plan.RowID{groupID}, "other_config": map[string]string{"subnet": "10.0.0.0/24"}})
	put(s, "Logical_Router", "router", plan.RowID{}, plan.Cols{"name": "router",
		"options": map[string]string{"chassis": "n1"}})
	put(s, tableGroup, "group", plan.RowID{}, plan.Cols{"name": groupMark + "group"})
	put(s, "Address_Set", "set", plan.RowID{}, plan.Cols{"name": "set"})
	put(s, "QoS", "replies", switchID, plan.Cols{"priority": 103, "match": "ip4 && ct.rpl", "direction": "from-lport",
		"action": map[string]string{"mark": "42"}})
}

func elems(s *plan.State, addrs ...string) {
	for _, a := range addrs {
		s.SetElems.Put(planetest.Owner("eip/e"), plan.SetElem{Set: "set", Addr: a}, plan.None{})
	}
}

func nbStateA() *plan.State {
	s := plan.New()
	nbCommon(s)
	elems(s, "10.0.0.1", "10.0.0.2")
	put(s, "Logical_Switch_Port", "pod-a", switchID, plan.Cols{"name": "pod-a", "type": "",
		"addresses": []string{"0a:58:0a:00:00:01 10.0.0.1"}, "options": map[string]string{"requested-chassis": "n1",
			"iface-id-ver": "1"}, "external_ids": map[string]string{"note": "x"}})
	put(s, "Logical_Switch_Port", "pod-b", switchID, plan.Cols{"name": "pod-b", "type": "",
		"addresses": []string{"0a:58:0a:00:00:02 10.0.0.2"}, "options": map[string]string{"requested-chassis": "n1"},
		"external_ids": map[string]string{"note": "y"}})
	put(s, "Logical_Router_Policy", "eip", routerID, plan.Cols{"priority": 100, "match": "ip4.src == $set",
		"action": "reroute", "nexthops": []string{"100.88.0.2", "100.88.0.3"}})
	put(s, "Load_Balancer", "lb", groupID, plan.Cols{"name": "lb",
		"vips": map[string]string{"10.96.0.1:80": "10.0.0.1:80"}, "protocol": "tcp"})
	meter := plan.RowID{Table: "Meter", Name: "meter"} // must have a band
	put(s, "Meter", "meter", plan.RowID{}, plan.Cols{"name": "meter", "unit": "pktps", "fair": true})
	put(s, "Meter_Band", "band", meter, plan.Cols{"action": "drop", "rate": 50, "burst_size": 100})
	put(s, "Copp", "copp", plan.RowID{}, plan.Cols{"name": "copp", "meters": map[string]string{"arp": "meter"}})
	return s
}

func nbStateB() *plan.State {
	s := plan.New()
	nbCommon(s)
	elems(s, "10.0.0.2", "10.0.0.3", "10.0.1.0/24")
	put(s, "Logical_Switch_Port", "pod-b", switchID, plan.Cols{"name": "pod-b", "type": "",
		"addresses": []string{"0a:58:0a:00:00:02 10.0.0.2", "unknown"}, "options": map[string]string{},
		"external_ids": map[string]string{"note": "z"}})
	put(s, "Logical_Router_Policy", "eip", routerID, plan.Cols{"priority": 100, "match": "ip4.src == $set",
		"action": "drop", "nexthops": []string{}})
	put(s, "NAT", "eip", routerID, plan.Cols{"type": "snat", "external_ip": "172.18.0.77", "logical_ip": "10.0.0.0/16",
		"match": "ip4.src == $set"})
	put(s, "Load_Balancer", "lb", plan.RowID{}, plan.Cols{"name": "lb", "vips": map[string]string{}, "protocol": "udp"})
	return s
}

var sbShow = map[string][]string{"Chassis": {"name", "hostname", "other_config", "external_ids"}, "Encap": {"type",
	"ip", "options", "chassis_name"}}

func putChassis(s *plan.State, who, name, ip string) {
	id := plan.RowID{Table: "Chassis", Name: name}
	s.SB.Put(planetest.Owner(who), id, plan.Row{Cols: plan.Cols{"name": name, "hostname": "host-" + name,
		"other_config": map[string]string{"is-remote": "true"}}})
	s.SB.Put(planetest.Owner(who), plan.RowID{Table: "Encap", Name: "encap-" + name}, plan.Row{Parent: id,
		Cols: plan.Cols{"type": "geneve", "ip": ip, "options": map[string]string{"csum": "true"},
			"chassis_name": name}})
}

func sbRig(t *testing.T) *planetest.Rig {
	env := ovntest.Start(t)
	p := newProxy(t, env.SB)
	d := dumper{env, env.SB, dbSouth, []string{"Chassis", "Encap"}}
	a, b, bad := plan.New(), plan.New(), plan.New()
	for _, s := range []*plan.State{a, bad} {
		putChassis(s, "node/n2", "n2", "172.18.0.2")
		putChassis(s, "node/n3", "n3", "172.18.0.3")
	}
	bad.SB.Put(planetest.Owner("node/bad"),
		plan.RowID{Table: "Chassis", Name: "bad"}, plan.Row{Cols: plan.Cols{"name": "n2"}})
	putChassis(b, "node/n3", "n3", "172.18.0.33")
	putChassis(b, "node/n4", "n4", "172.18.0.2")
	env.SBCtl("chassis-add", "n1", "geneve", "172.18.0.1")
	return &planetest.Rig{
		// n4 gets the address of n2, and a Chassis cannot be without an Encap
		GivesWay: func(line string) bool { return strings.Contains(line, "n2") },
		New: func(t *testing.T) plane.Plane {
			pl := NewSB("unix:"+p.path, Options{Log: quiet()})
			t.Cleanup(pl.Close)
			return pl
		},
		A: a, B: b,
		Dump: func(t *testing.T) string { return d.dump(t, true, sbShow) },
		Text: func(s *plan.State) string {
			return stateText(s.SB, nil, sbShow, func(id plan.RowID) string {
				if r, ok := s.SB.Get(id); ok && id.Table == "Encap" {
					return fmt.Sprint(r.Cols["type"], " ", r.Cols["ip"])
				}
				return id.Name
			})
		},
		PutForeign:  func(t *testing.T) { env.SBCtl("--may-exist", "chassis-add", "n9", "geneve", "172.18.0.9") },
		DumpForeign: func(t *testing.T) string { return d.dump(t, false, sbShow) },
		DeleteOurs:  func(t *testing.T) { env.SBCtl("chassis-del", "n2") },
		Monitored:   true,
		Writes:      func() int { return int(p.txns.Load()) },
		FailOnce:    func(*testing.T) { p.cut.Store(true) },
		Bad:         bad, BadOwner: planetest.Owner("node/bad"), Hostile: hostileSB(),
	}
}

func TestNBConformance(t *testing.T) { planetest.Run(t, nbRig) }

func TestSBConformance(t *testing.T) { planetest.Run(t, sbRig) }

// hostileNB are rows with what OVN would read as more than one expression, address or line.
func hostileNB() []plan.Rows {
	policy := func(cols plan.Cols) plan.Rows {
		all := plan.Cols{"priority": 100, "match": "ip4.src == 10.0.0.8", "action": "drop"}
		maps.Copy(all, cols)
		return plan.Rows{NB: map[plan.RowID]plan.Row{{Table: "Logical_Router_Policy",
			Name: "x"}: {Parent: plan.Router("router"), Cols: all}}}
	}
	return []plan.Rows{
		policy(plan.Cols{"match": "ip4.src == 10.0.0.8\n|| 1"}), policy(plan.Cols{"match": `inport == "a`}),
		policy(plan.Cols{"match": `inport == "a\"`}),
		policy(plan.Cols{"action": "reroute", "nexthops": []string{"10.0.0.1, 10.0.0.2"}}),
		policy(plan.Cols{"action": "drop\x00"}),
		policy(plan.Cols{"options": map[string]string{"pkt_mark": "1\n2"}}),
		{SetElems: map[plan.SetElem]plan.None{{Set: "set", Addr: "10.0.0.8} || ip4.src == {0.0.0.0/0"}: {}}},
		{SetElems: map[plan.SetElem]plan.None{{Set: "set", Addr: "fe80::1%eth0"}: {}}},
	}
}

func hostileSB() []plan.Rows {
	return []plan.Rows{{SB: map[plan.RowID]plan.Row{{Table: "Chassis", Name: "n8"}: {Cols: plan.Cols{"name": "n8",
		"hostname": "n8\nn9"}}}}}
}
