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

// schedule draws the faults of one round, in the order of their beginnings: the same of the same numbers. Something
// happens every few seconds. One node at a time is disturbed, so that there is always one that can host.
func schedule(r *rand.Rand, s stage, span time.Duration) []fault {
	var all []fault
	for at := time.Duration(0); ; {
		at += between(r, time.Second, 5*time.Second)
		if at > span {
			return all
		}
		f := draw(r, s)
		f.at = at
		if !slices.ContainsFunc(all, f.clashes) {
			all = append(all, f)
		}
	}
}

// weights are how often a kind is drawn, and for how many seconds.
var weights = []struct {
	kind        kind
	weight      int
	short, long time.Duration
}{
	{kill, 8, 2, 2}, {freeze, 6, 1, 9}, {power, 2, 4, 12}, {cutAPI, 1, 2, 10}, {cutFabric, 1, 2, 10},
	{cutBoth, 1, 2, 10},
	{fullDisk, 1, 3, 8}, {noAPI, 1, 5, 12}, {unlabel, 2, 2, 8}, {cordon, 2, 2, 8}, {respec, 2, 2, 8},
	{relabel, 2, 2, 8},
	{recreate, 3, 3, 3}, {retraffic, 2, 2, 8},
}

func draw(r *rand.Rand, s stage) fault {
	total := 0
	for _, w := range weights {
		total += w.weight
	}
	n, i := r.IntN(total), 0
	for ; n >= weights[i].weight; i++ {
		n -= weights[i].weight
	}
	f := fault{kind: weights[i].kind, lasts: between(r, weights[i].short*time.Second, weights[i].long*time.Second)}
	f.aim(r, s)
	return f
}

// aim draws what a fault concerns.
func (f *fault) aim(r *rand.Rand, s stage) {
	switch f.kind {
	case noAPI:
	case retraffic:
		f.object = byTraffic
	case respec:
		f.object = s.egressIPs[r.IntN(len(s.egressIPs))]
	case relabel, recreate:
		f.object = s.pods[r.IntN(len(s.pods))]
	case kill, freeze:
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

// clashes says whether two faults must not be under way at the same time.
func (f fault) clashes(g fault) bool {
	const apart = 500 * time.Millisecond
	if f.at > g.end()+apart || g.at > f.end()+apart {
		return false
	}
	if f.kind == noAPI || g.kind == noAPI {
		return f.kind == g.kind || f.needsAPI() || g.needsAPI()
	}
	if f.node != "" && g.node != "" {
		return f.node != g.node || f.alone() || g.alone() || f.object == g.object
	}
	return f.object != "" && f.object == g.object
}

// needsAPI says whether it cannot be done, or undone, without the API server.
func (f fault) needsAPI() bool {
	switch f.kind {
	case power, unlabel, cordon, respec, relabel, recreate, retraffic:
		return true
	}
	return false
}

// alone says whether nothing else can be done on the node meanwhile.
func (f fault) alone() bool {
	switch f.kind {
	case kill, freeze, unlabel, cordon:
		return false
	}
	return true
}
