//go:build !race

package simulate

import (
	"fmt"
	"os"
	"time"

	"pgregory.net/rapid"
)

// drawIncidents draws a line of a story; or a fault and what happens during it: a few lines, or a restore of what was
// backed up before; or a pod that is replaced; or a drain that its node learns of late.
func drawIncidents(t *rapid.T) []incident {
	at := time.Duration(rapid.IntRange(0, 150).Draw(t, "at")) * 200 * time.Millisecond
	pause := func() time.Duration {
		at += time.Duration(rapid.IntRange(1, 15).Draw(t, "pause")) * 200 * time.Millisecond
		return at
	}
	switch rapid.IntRange(0, 9).Draw(t, "one or more") {
	case 0:
		return []incident{{at, "backup"}, {pause(), draw(t, lineKinds)}, {pause(), drawFault(t)},
			{pause(), "restore"}, {pause(), draw(t, lineKinds)}}
	case 1, 2:
		return []incident{{at, drawFault(t)}, {pause(), draw(t, lineKinds)}, {pause(), draw(t, lineKinds)},
			{pause(), draw(t, lineKinds)}}
	case 3:
		name := oneOf(t, pods)
		return []incident{{at, oneOf(t, []string{"delete ", "force "}) + name},
			{pause(), fmt.Sprint("pod ", name, " ", oneOf(t, nodes), " ", oneOf(t, groups))}}
	case 4:
		late := draw(t, []lineKind{{1, line("late", nodes, watches, lateFor)}})
		return []incident{{at, late}, {pause(), line("assignable", nodes, []string{"yes"})(t)},
			{pause(), line("assignable", nodes, []string{"no"})(t)}}
	}
	return []incident{{at, draw(t, lineKinds)}}
}

// lineKind is a kind of line, and how often it is drawn.
type lineKind struct {
	weight int
	draw   func(*rapid.T) string
}

func draw(t *rapid.T, kinds []lineKind) string {
	all := 0
	for _, k := range kinds {
		all += k.weight
	}
	which := rapid.IntRange(0, all-1).Draw(t, "which")
	for _, k := range kinds {
		if which -= k.weight; which < 0 {
			return k.draw(t)
		}
	}
	panic("no kind has the weight")
}

// line returns what draws a line of some words, each of them one of some.
func line(words ...any) func(*rapid.T) string {
	return func(t *rapid.T) string {
		text := ""
		for _, w := range words {
			switch w := w.(type) {
			case string:
				text += " " + w
			case []string:
				text += " " + oneOf(t, w)
			}
		}
		return text[1:]
	}
}

var (
	nodes     = []string{"n1", "n2", "n3"}
	groups    = []string{"a", "b", "none", "s", "t"}
	pods      = []string{"p", "q", "blue/r", "red/u"} // without networks all are of one namespace
	egressIPs = []string{"a", "b"}
	services  = []string{"s", "t"}
	traffics  = []string{"t", "u"}
	layouts   = []string{"0", "1", "2"} // of addresses
	spans     = []string{"1s", "3s", "10s", "30s", "70s"}
	lateFor   = append([]string{"400s"}, spans...)
	watches   = []string{"nodes", "pods", "egressips", "namespaces", "egressnodes", "services", "egressservices",
		"egressiptraffics", "endpointslices", definitions}
)

var lineKinds = []lineKind{
	{6, line("relabel", pods, groups)},
	{4, line("pod", pods, nodes, groups)},
	{1, line("pending", pods, groups)},
	{1, line("bind", pods, nodes)},
	{2, line("delete", pods)},
	{2, line("force", pods)},
	{2, line("egressip", egressIPs, groups, layouts)},
	{2, line("egressip", egressIPs, groups, layouts, egressIPs)},
	{2, line("forget", egressIPs)},
	{1, line("annotate egressips", egressIPs, "override", []string{"never", "-"})},
	{1, line("annotate", []string{"egressips a", "egressips b", "egressservices s", "egressservices t"},
		"unassigned", []string{"drop", "-"})},
	{2, line("namespace", []string{"x", "y"}, []string{"", "blue", "red"})},
	{2, line("assignable", nodes, []string{"yes", "no"})},
	{1, line("forget-traffic", traffics)},
	{2, line("narrow", egressIPs, []string{"", "t", "u", "t u"})},
	{2, line("traffic", traffics, []string{"", "x", "y", "x y"})},
	{1, line("service", services, groups, []string{"0", "1"}, services)},
	{1, line([]string{"egressservice", "forget-egressservice", "forget-service", "no-ingress"}, services)},
	{2, line("endpoint", services, []string{"", "p", "q"})},
	{1, line("choose", services, []string{"", "n1", "n2", "n3"})},
	{1, line("type", services, []string{"ClusterIP", "LoadBalancer"})},
	{1, line("isolate", nodes, spans)},
	{1, line("clock", nodes, []string{"1h", "-1h", "5s"})},
	{1, line([]string{"remember", "overwrite"}, nodes)},
	{1, line([]string{"controller-kill", "controller-hang"}, []string{"n1", "n2"}, spans)},
	{9, func(t *rapid.T) string { return drawFault(t) }},
}

// nodeFaults keep a node from following.
var nodeFaults = []lineKind{
	{2, line("kill", nodes, spans)},
	{2, line("hang", nodes, spans)},
	{2, line("cut", nodes, spans)},
	{2, line("late", nodes, watches, lateFor)},
	{1, line("deaf", nodes, spans)},
	{1, line("stall", nodes, spans)},
	{1, line("fail", nodes, []string{hostPart, northPart}, spans)},
	{1, line("reboot", nodes, spans)},
	{1, line("rename", nodes, spans)},
}

// drawFault draws one of them. Where a Node is deleted the documentation has most of its limits, which the verdict may
// not know yet: only long runs draw that.
func drawFault(t *rapid.T) string {
	if os.Getenv("SIMULATE_TIME") != "" && rapid.IntRange(0, 14).Draw(t, "whose Node goes") == 0 {
		return line("reregister", nodes, spans)(t)
	}
	return draw(t, nodeFaults)
}
