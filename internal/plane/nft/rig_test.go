package nft

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/knftables"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/planetest"
)

func TestFakeConforms(t *testing.T) {
	planetest.Run(t, func(t *testing.T) *planetest.Rig {
		f := NewFake("gone0")
		return rig(t, f.INet, f.NetDev, f.inet.device, knftables.NewFake(knftables.InetFamily, "other"))
	})
}

func TestKernelConforms(t *testing.T) {
	planetest.Run(t, func(t *testing.T) *planetest.Rig {
		planetest.OwnNetns(t)
		inet, err := openTable(knftables.InetFamily)
		fatal(t, err)
		return rig(t, inet, open(t, knftables.NetDevFamily, TableName), linkIndex,
			open(t, knftables.InetFamily, "other"))
	})
}

func open(t testing.TB, family knftables.Family, table string) knftables.Interface {
	t.Helper()
	nft, err := knftables.New(family, table)
	if err != nil {
		t.Fatal(err)
	}
	return nft
}

// counted counts transactions, and can be away for some calls.
type counted struct {
	knftables.Interface
	runs, away int
	direct     int // of the runs, those without a command
}

var errAway = errors.New("nft is away")

func (c *counted) Run(ctx context.Context, tx *knftables.Transaction) error {
	if c.away > 0 {
		c.away--
		return errAway
	}
	c.runs++
	return c.Interface.Run(ctx, tx)
}

func (c *counted) ListAll(ctx context.Context) (map[string][]string, error) {
	if c.away > 0 {
		c.away--
		return nil, errAway
	}
	return c.Interface.ListAll(ctx)
}

// over counts for a table that is direct, too.
func (c *counted) over() knftables.Interface {
	if d, ok := c.Interface.(direct); ok {
		return countedSets{c, d}
	}
	return c
}

type countedSets struct {
	*counted
	sets direct
}

func (c countedSets) changeElements(changes []elementChange) error {
	if c.away > 0 {
		c.away--
		return errAway
	}
	c.runs++
	c.direct++
	return c.sets.changeElements(changes)
}

func rig(t *testing.T, inet, netdev knftables.Interface, device Device, other knftables.Interface) *planetest.Rig {
	ci, cn := &counted{Interface: inet}, &counted{Interface: netdev}
	bad := stateA()
	bad.Replace(planetest.Owner("bad"),
		&plan.Rows{}, &plan.Rows{NFTRules: map[plan.NFTRule]string{{Chain: inetChain("pre"),
			Name: "50-bad"}: "ip saddr @nowhere drop"}})
	return &planetest.Rig{
		New: func(*testing.T) plane.Plane { return New(ci.over(), cn, device) },
		// the kernel refuses an element that overlaps one that is there
		GivesWay: func(line string) bool {
			return strings.HasPrefix(line, "inet elem nets ") || strings.HasPrefix(line, "inet elem shares ")
		},
		A: stateA(), B: stateB(),
		Dump:        func(t *testing.T) string { return dump(t, "inet", inet) + dump(t, "netdev", netdev) },
		Text:        text,
		PutForeign:  func(t *testing.T) { putForeign(t, other) },
		DumpForeign: func(t *testing.T) string { return dump(t, "other", other) },
		DeleteOurs: func(t *testing.T) {
			run(t, inet, func(tx *knftables.Transaction) {
				tx.Delete(&knftables.Element{Set: "pods", Key: []string{"10.0.0.1"}})
			})
		},
		Writes:   func() int { return ci.runs + cn.runs },
		FailOnce: func(*testing.T) { ci.away = 2 },
		Bad:      bad, BadOwner: planetest.Owner("bad"), Hostile: hostile(),
	}
}

// hostile are rows with what ends a rule, a string, a name or a line of nft's.
func hostile() []plan.Rows {
	rule := func(name, text string) plan.Rows {
		return plan.Rows{NFTRules: map[plan.NFTRule]string{{Chain: inetChain("pre"), Name: name}: text}}
	}
	elem := func(key string) plan.Rows {
		return plan.Rows{NFTElems: map[plan.NFTElem]string{{Set: "pods", Key: key}: ""}}
	}
	return []plan.Rows{
		rule("x", "accept\nflush ruleset"), rule("x", "accept; flush ruleset"), rule("x", "accept # drop"),
		rule("x", `iifname "a\" accept`), rule("x", `iifname "a accept`),
		rule("x\ny", "accept"), rule(`x" ; flush ruleset`, "accept"), elem("10.0.0.9 }\nflush ruleset"),
		elem(`10.0.0.9" }`), elem("10.0.0.9, 10.0.0.10"),
		{NFTSets: map[plan.NFTSet]plan.NFTSetSpec{{Name: "x { type ipv4_addr; }"}: {Key: "ipv4_addr"}}},
		{NFTSets: map[plan.NFTSet]plan.NFTSetSpec{{Name: "x"}: {Key: "ipv4_addr; flags interval"}}},
		{NFTChains: map[plan.NFTChain]plan.NFTChainSpec{inetChain("x; flush ruleset"): {}}},
		{NFTChains: map[plan.NFTChain]plan.NFTChainSpec{inetChain("x"): {Type: "filter", Hook: "input",
			Priority: "0; policy drop"}}},
	}
}

func inetChain(name string) plan.NFTChain { return plan.NFTChain{Family: "inet", Name: name} }

func rowsA() *plan.Rows {
	ingress := plan.NFTChain{Family: "netdev", Name: "lo-in"}
	return &plan.Rows{
		NFTChains: map[plan.NFTChain]plan.NFTChainSpec{
			inetChain("pre"):     {Type: "filter", Hook: "prerouting", Priority: "mangle"},
			inetChain("post"):    {Type: "nat", Hook: "postrouting", Priority: "srcnat", Policy: "accept"},
			inetChain("marking"): {},
			ingress:              {Type: "filter", Hook: "ingress", Priority: "-10", Device: "lo"},
		},
		NFTRules: map[plan.NFTRule]string{
			{Chain: inetChain("pre"), Name: "10-pods"}:            "ip saddr @pods ip daddr @nets jump marking",
			{Chain: inetChain("pre"), Name: "30-last"}:            "counter packets 0 bytes 0 accept",
			{Chain: inetChain("marking"), Name: "mark by source"}: "meta mark set ip saddr map @marks",
			{Chain: inetChain("post"), Name: "snat"}:              "ip saddr 10.0.0.1 snat ip to 192.0.2.1",
			{Chain: ingress, Name: "drop"}:                        "ip saddr 192.0.2.9 drop",
		},
		NFTSets: map[plan.NFTSet]plan.NFTSetSpec{
			{Name: "pods"}:  {Key: "ipv4_addr"},
			{Name: "pods6"}: {Key: "ipv6_addr"},
			{Name: "nets"}:  {Key: "ipv4_addr", Interval: true},
			{Name: "pairs"}: {Key: "ipv4_addr . ifname"},
			{Name: "marks"}: {Key: "ipv4_addr", Value: "mark"},
			{Name: "shares"}: {Key: "ip daddr . meta l4proto . th dport . numgen random mod 65536",
				Value: "ip daddr . th dport", Interval: true, TypeOf: true},
		},
		NFTElems: map[plan.NFTElem]string{
			{Set: "pods", Key: "10.0.0.1"}:             "",
			{Set: "pods", Key: "10.0.0.2"}:             "",
			{Set: "pods6", Key: "fd00:0:0::1"}:         "",
			{Set: "nets", Key: "192.0.2.0/24"}:         "",
			{Set: "nets", Key: "198.51.100.7/32"}:      "",
			{Set: "pairs", Key: `10.0.0.1 . eth0.100`}: "",
			{Set: "marks", Key: "10.0.0.1"}:            "0x0e000005",
			{Set: "marks", Key: "10.0.0.2"}:            "0x0e000006",

			{Set: "shares", Key: "192.0.2.1 . tcp . 80 . 0-32767"}:     "10.0.0.1 . 8080",
			{Set: "shares", Key: "192.0.2.1 . tcp . 80 . 32768-65535"}: "10.0.0.2 . 8080",
			{Set: "shares", Key: "192.0.2.1 . udp . 80 . 0-65535"}:     "10.0.0.2 . 8080",
		},
	}
}

func stateA() *plan.State {
	s := plan.New()
	s.Replace(planetest.Owner("a"), &plan.Rows{}, rowsA())
	return s
}

// stateB puts a rule between two, changes one, changes a map's value, splits a prefix and divides shares anew.
func stateB() *plan.State {
	r := rowsA()
	r.NFTRules[plan.NFTRule{Chain: inetChain("pre"), Name: "10-pods"}] = "ip saddr @pods jump marking"
	r.NFTRules[plan.NFTRule{Chain: inetChain("pre"), Name: "20-new"}] = "ip saddr @more accept"
	delete(r.NFTRules, plan.NFTRule{Chain: inetChain("post"), Name: "snat"})
	delete(r.NFTChains, inetChain("post"))
	r.NFTSets[plan.NFTSet{Name: "more"}] = plan.NFTSetSpec{Key: "ipv4_addr"}
	delete(r.NFTSets, plan.NFTSet{Name: "pairs"})
	delete(r.NFTElems, plan.NFTElem{Set: "pairs", Key: `10.0.0.1 . eth0.100`})
	delete(r.NFTElems, plan.NFTElem{Set: "nets", Key: "192.0.2.0/24"})
	r.NFTElems[plan.NFTElem{Set: "nets", Key: "192.0.2.0/25"}] = ""
	r.NFTElems[plan.NFTElem{Set: "nets", Key: "192.0.2.128/25"}] = ""
	r.NFTElems[plan.NFTElem{Set: "marks", Key: "10.0.0.1"}] = "0x0e000007"
	delete(r.NFTElems, plan.NFTElem{Set: "shares", Key: "192.0.2.1 . tcp . 80 . 32768-65535"})
	delete(r.NFTElems, plan.NFTElem{Set: "shares", Key: "192.0.2.1 . tcp . 80 . 0-32767"})
	for key, value := range map[string]string{"0-21844": "10.0.0.1 . 8080", "21845-43689": "10.0.0.2 . 8080",
		"43690-65535": "10.0.0.3 . 8080"} {
		r.NFTElems[plan.NFTElem{Set: "shares", Key: "192.0.2.1 . tcp . 80 . " + key}] = value
	}
	delete(r.NFTElems, plan.NFTElem{Set: "pods", Key: "10.0.0.2"})
	r.NFTElems[plan.NFTElem{Set: "pods", Key: "10.0.0.3"}] = ""
	s := plan.New()
	s.Replace(planetest.Owner("a"), &plan.Rows{}, r)
	return s
}

// dump lists a table, in terms of its own: not with the code under test.
func dump(t *testing.T, family string, nft knftables.Interface) string {
	t.Helper()
	names, err := nft.ListAll(t.Context())
	if knftables.IsNotFound(err) {
		return ""
	}
	fatal(t, err)
	var l []string
	for _, kind := range []string{"chain", "set", "map"} {
		for _, name := range names[kind] {
			if name == recordSet {
				continue
			}
			l = append(l, family+" "+kind+" "+name)
			l = append(l, dumpInside(t, family, nft, kind, name)...)
		}
	}
	slices.Sort(l)
	return lines(l)
}

func dumpInside(t *testing.T, family string, nft knftables.Interface, kind, name string) (l []string) {
	if kind == "chain" {
		rules, err := nft.ListRules(t.Context(), name)
		fatal(t, err)
		for _, r := range rules {
			l = append(l, family+" rule "+name+" "+*r.Comment)
		}
		return l
	}
	elems, err := nft.ListElements(t.Context(), kind, name)
	fatal(t, err)
	for _, e := range elems {
		l = append(l, elemLine(family, name, strings.Join(e.Key, " . "), strings.Join(e.Value, " . ")))
	}
	return l
}

func elemLine(family, set, key, value string) string {
	return strings.ReplaceAll(strings.TrimSpace(family+" elem "+set+" "+key+" "+value), `"`, "")
}

func lines(l []string) string {
	if len(l) == 0 {
		return ""
	}
	return strings.Join(l, "\n") + "\n"
}

func text(s *plan.State) string {
	inet, netdev := texts(s)
	return inet + netdev
}

// texts are those of the two tables.
func texts(s *plan.State) (string, string) {
	var inet, netdev []string
	add := func(family, line string) {
		if family == "netdev" {
			netdev = append(netdev, line)
			return
		}
		inet = append(inet, line)
	}
	for k := range s.NFTChains.Rows() {
		add(k.Family, k.Family+" chain "+k.Name)
	}
	for k, v := range s.NFTRules.Rows() {
		add(k.Chain.Family, k.Chain.Family+" rule "+k.Chain.Name+" "+ruleComment(k.Name, v))
	}
	for k, v := range s.NFTSets.Rows() {
		add("inet", "inet "+setObject(k, v).kind+" "+k.Name)
	}
	// As nft lists them.
	listed := strings.NewReplacer("0x0e000005", "234881029", "0x0e000006", "234881030",
		"0x0e000007", "234881031", "fd00:0:0::1", "fd00::1", "/32", "")
	for k, v := range s.NFTElems.Rows() {
		add("inet", elemLine("inet", k.Set, listed.Replace(k.Key), listed.Replace(v)))
	}
	slices.Sort(inet)
	slices.Sort(netdev)
	return lines(inet), lines(netdev)
}

func putForeign(t *testing.T, other knftables.Interface) {
	run(t, other, func(tx *knftables.Transaction) {
		tx.Add(&knftables.Table{})
		tx.Add(&knftables.Chain{Name: "pre"})
		tx.Add(&knftables.Set{Name: "pods", Type: "ipv4_addr"})
		tx.Add(&knftables.Element{Set: "pods", Key: []string{"10.0.0.1"}})
		tx.Add(&knftables.Rule{Chain: "pre", Rule: "ip saddr @pods accept",
			Comment: knftables.PtrTo("10-pods #000000000000")})
	})
}

func run(t *testing.T, nft knftables.Interface, fill func(*knftables.Transaction)) {
	t.Helper()
	tx := nft.NewTransaction()
	fill(tx)
	fatal(t, nft.Run(t.Context(), tx))
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func nftList(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("nft", "list", "table", "inet", TableName).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
