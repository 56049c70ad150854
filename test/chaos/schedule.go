package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// kind is what a fault does.
type kind string

// Kinds of faults. Those of a node concern its processes, power, links and disk; the others the cluster's objects.
const (
	kill      kind = "kill"      // SIGKILL of a process, which is started again after 0.3 s
	stop      kind = "stop"      // the process is dead until it is started again
	freeze    kind = "freeze"    // SIGSTOP, then SIGCONT
	power     kind = "power"     // power-off, then power-on: a reboot
	cutAPI    kind = "cut-api"   // the node does not reach the API server
	cutFabric kind = "cut-net"   // the node reaches the API server only
	cutBoth   kind = "cut-both"  // the node reaches nobody
	fullDisk  kind = "full-disk" // the file system of OVN's databases is full
	noAPI     kind = "no-api"    // etcd, API server, controllers and scheduler are dead
	unlabel   kind = "unlabel"   // the node is no egress node
	cordon    kind = "cordon"    // the node is unschedulable
	respec    kind = "respec"    // an EgressIP has other addresses
	exchange  kind = "exchange"  // two EgressIPs exchange their addresses
	relabel   kind = "relabel"   // a pod is of the other EgressIP
	retraffic kind = "retraffic" // an EgressIPTraffic has other networks
	recreate  kind = "recreate"  // a pod is deleted, and made anew
)

// processes are those of a node that are killed and frozen.
var processes = []string{
	"egret-node", "egret-controller", "ovn-northd", "ovn-controller", "ovsdb-nb", "ovsdb-sb", "ovsdb-server",
	"ovs-vswitchd",
	"containerd", "kubelet",
}

// fault is one thing that happens, from the beginning of a round.
type fault struct {
	at     time.Duration
	lasts  time.Duration // until it is undone; a kill undoes itself
	kind   kind
	node   string // of faults of a node
	object string // the process, the EgressIP or the pod
}

func (f fault) end() time.Duration { return f.at + f.lasts }

// String is what the log says of it.
func (f fault) String() string {
	text := string(f.kind)
	for _, word := range []string{f.node, f.object} {
		if word != "" {
			text += " " + word
		}
	}
	return fmt.Sprintf("%s for %s", text, f.lasts)
}

// stage is what faults can concern.
type stage struct {
	nodes       []string // the first two run the controllers
	pods        []string // with an EgressIP
	egressIPs   []string
	controllers int
}

// longest is how long a fault lasts at most, and long faults last at least a third of that.
const longest = 90 * time.Second

// schedule draws the faults of one round, in the order of their beginnings: the same of the same numbers. Something
// happens every few seconds, in the span and then until the last long fault ends. One node is always whole, so that it
// can host, and one controller.
func schedule(r *rand.Rand, s stage, span time.Duration) []fault {
	var all []fault
	end := span
	for at := time.Duration(0); ; {
		at += between(r, time.Second, 5*time.Second)
		if at > end {
			return all
		}
		f, isLong := draw(r, s)
		f.at = at
		if isLong && at > span || slices.ContainsFunc(all, f.clashes) || !s.leavesOne(all, f) {
			continue
		}
		all = append(all, f)
		if isLong {
			end = max(end, f.end())
		}
	}
}

// weights are how often a kind is drawn, and for how many seconds.
var weights = []struct {
	kind        kind
	weight      int
	short, long time.Duration
}{
	{kill, 8, 2, 2}, {freeze, 6, 1, 9}, {stop, 4, 1, 9}, {power, 2, 4, 12}, {cutAPI, 1, 2, 10}, {cutFabric, 1, 2, 10},
	{cutBoth, 1, 2, 10},
	{fullDisk, 1, 3, 8}, {noAPI, 1, 5, 12}, {unlabel, 2, 2, 8}, {cordon, 2, 2, 8}, {respec, 2, 2, 8},
	{relabel, 2, 2, 8}, {exchange, 2, 4, 8},
	{recreate, 3, 3, 3}, {retraffic, 2, 2, 8},
}

// draw draws a fault. One in ten of those that can last is long.
func draw(r *rand.Rand, s stage) (f fault, isLong bool) {
	total := 0
	for _, w := range weights {
		total += w.weight
	}
	n, i := r.IntN(total), 0
	for ; n >= weights[i].weight; i++ {
		n -= weights[i].weight
	}
	f = fault{kind: weights[i].kind, lasts: between(r, weights[i].short*time.Second, weights[i].long*time.Second)}
	if isLong = r.IntN(10) == 0 && f.canLast(); isLong {
		f.lasts = between(r, longest/3, longest)
	}
	f.aim(r, s)
	return f, isLong
}

// canLast reports whether a fault concerns machines or processes, which may be away for long.
func (f fault) canLast() bool {
	switch f.kind {
	case freeze, stop, power, cutAPI, cutFabric, cutBoth, noAPI:
		return true
	}
	return false
}

// aim draws what a fault concerns.
func (f *fault) aim(r *rand.Rand, s stage) {
	switch f.kind {
	case noAPI:
	case retraffic:
		f.object = byTraffic
	case exchange:
		f.object = exchanged[0]
	case respec:
		f.object = s.egressIPs[r.IntN(len(s.egressIPs))]
	case relabel, recreate:
		f.object = s.pods[r.IntN(len(s.pods))]
	case kill, freeze, stop:
		number := r.IntN(len(s.nodes))
		f.node, f.object = s.nodes[number], processes[r.IntN(len(processes))]
		if f.object == "egret-controller" {
			f.node = s.nodes[number%s.controllers]
		}
	default:
		f.node = s.nodes[r.IntN(len(s.nodes))]
	}
}

// between draws a time, in tenths of seconds.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	const step = 100 * time.Millisecond
	return low + time.Duration(r.Int64N(int64((high-low)/step)+1))*step
}

// apart is the least time between two faults of one thing.
const apart = 500 * time.Millisecond

func (f fault) overlaps(g fault) bool { return f.at <= g.end()+apart && g.at <= f.end()+apart }

// clashes says whether two faults must not be under way at the same time.
func (f fault) clashes(g fault) bool {
	switch {
	case !f.overlaps(g):
		return false
	case f.kind == noAPI || g.kind == noAPI:
		return f.kind == g.kind || f.needsAPI() || g.needsAPI()
	case f.node != "" && g.node != "":
		return f.node == g.node && (f.alone() || g.alone() || f.object == g.object)
	}
	return f.object != "" && (f.about(g.object) || g.about(f.object))
}

// exchanged are the EgressIPs that exchange their addresses.
var exchanged = [...]string{"chaos-a", "chaos-b"}

// about reports whether a fault is about an object.
func (f fault) about(object string) bool {
	return f.object == object || f.kind == exchange && slices.Contains(exchanged[:], object)
}

// leavesOne reports whether one node is whole at each time of a further fault, and one controller.
func (s stage) leavesOne(all []fault, f fault) bool {
	disturbed, silent := map[string]bool{f.node: true}, map[string]bool{f.node: f.silencesController()}
	for _, g := range all {
		if f.overlaps(g) {
			disturbed[g.node] = true
			silent[g.node] = silent[g.node] || g.silencesController()
		}
	}
	whole := func(node string) bool { return !disturbed[node] }
	speaks := func(node string) bool { return !silent[node] }
	return slices.ContainsFunc(s.nodes, whole) && slices.ContainsFunc(s.nodes[:s.controllers], speaks)
}

// silencesController reports whether a controller on the fault's node decides nothing meanwhile. Open vSwitch is on its
// way to the API server.
func (f fault) silencesController() bool {
	switch f.kind {
	case power, cutAPI, cutFabric, cutBoth:
		return true
	}
	return f.object == "egret-controller" || f.object == "ovs-vswitchd" || f.object == "ovsdb-server"
}

// needsAPI says whether it cannot be done, or undone, without the API server.
func (f fault) needsAPI() bool {
	switch f.kind {
	case power, unlabel, cordon, respec, exchange, relabel, recreate, retraffic:
		return true
	}
	return false
}

// alone says whether nothing else can be done on the node meanwhile.
func (f fault) alone() bool {
	switch f.kind {
	case kill, freeze, stop, unlabel, cordon:
		return false
	}
	return true
}
