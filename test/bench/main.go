package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"
)

// figure is a group of figures that are measured together.
type figure struct {
	name    string
	measure func(context.Context, *lab) error
}

func figures() []figure {
	var list []figure
	for _, s := range settings() {
		list = append(list, figure{"first-packet/" + s.name, s.measure})
	}
	list = append(list, []figure{
		{"join", joins},
		{"add", adds},
		{"memory", memory},
		{"probes", probes},
		{"reprogram", reprogram},
		{"planned-move", plannedMoves},
		{"false-alarms", falseAlarms},
		{"failover/one-ip", outage{name: "one-ip", addresses: 1, max: 1500}.measure},
		{"failover/one-ip-own-network",
			outage{name: "one-ip-own-network", addresses: 1, own: true, max: 1500}.measure},
		{"failover/one-ip-leader", outage{name: "one-ip-leader", addresses: 1, onLeader: true, max: 1500}.measure},
		{"failover/two-ips", outage{name: "two-ips", addresses: 2, p90: 500, max: 900}.measure},
		{"failover/two-ips-own-network",
			outage{name: "two-ips-own-network", addresses: 2, own: true, p90: 500, max: 900}.measure},
		{"failover/two-ips-no-api",
			outage{name: "two-ips-no-api", addresses: 2, noAPI: true, p90: 500, max: 900}.measure},
		{"leaks/pod-starts", leaksAtStart},
		{"leaks/pod-starts-own-network", leaksAtOwnStart},
		{"services/many", manyServices},
		{"egress-service/failover", serviceFailover},
		{"egress-service/join", serviceJoins},
		{"traffic/change", trafficChange},
		{"traffic/networks", trafficNetworks},
		{"networks", networkCost},
	}...)
	for _, u := range upsets() {
		list = append(list, figure{"leaks/" + u.name, u.measure})
	}
	return list
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "answer" { // as the agents of nodes that are probed
		exit(answer())
	}
	run := flag.String("run", "*", "figures to measure, by shell patterns: first-packet,join")
	runs := flag.Int("runs", 30, "`times` that a figure is measured")
	busy := flag.Duration("busy", 10*time.Minute, "`time` of full load in which false alarms are counted")
	services := flag.Int("services", 5000, "`number` of Services in services/many")
	health := flag.Int("egressip-node-healthcheck-port", 0,
		"`port` of the agents' health service (gRPC); 0: egress nodes are probed at TCP port 9")
	keep := flag.Bool("keep", false, "leave the sandboxes up, for the next time")
	name := flag.String("name", "bench", "start of the sandboxes' names")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l := &lab{name: *name, runs: *runs, busy: *busy, services: *services, health: *health, keep: *keep, out: os.Stdout,
		log: os.Stderr}
	exit(measure(ctx, l, strings.Split(*run, ",")))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// measure runs the chosen figures. One that fails does not keep the others from being measured.
func measure(ctx context.Context, l *lab, patterns []string) (err error) {
	defer l.close()
	printHeader(l.out)
	chosen := 0
	for _, f := range figures() {
		if !matches(f.name, patterns) {
			continue
		}
		chosen++
		if e := f.measure(ctx, l); e != nil {
			err = fmt.Errorf("%s: %w", f.name, e)
			fmt.Fprintln(l.log, "bench:", err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if chosen == 0 {
		return fmt.Errorf("no figure is called %v", patterns)
	}
	return err
}

// matches says whether a pattern is for a figure, GROUP or GROUP/NAME, or for its group.
func matches(name string, patterns []string) bool {
	for _, p := range patterns {
		group, _, _ := strings.Cut(name, "/")
		whole, _ := path.Match(p, name)
		part, _ := path.Match(p, group)
		if whole || part {
			return true
		}
	}
	return false
}
