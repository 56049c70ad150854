package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
)

// counting prints "number name" lines: what a node holds. Flows that the switch made itself (cookie 0xdeff106: who else
// announced an egress IP) are not counted: they end by themselves, up to 70 s after the last announcement.
const counting = `
echo "$(ovsdb-client --format=csv --no-headings dump unix:/run/ovn/ovnnb_db.sock OVN_Northbound | wc -l) rows of the Northbound"
flows() { ovs-ofctl dump-aggregate "$@" | sed 's/.*flow_count=//'; }
for b in br-int breth0; do
	echo "$(($(flows "$b") - $(flows "$b" cookie=0xdeff106/-1))) flows of $b"
done
for port in %d %d; do
	curl -s --max-time 5 http://127.0.0.1:$port/metrics | awk -v port=$port '
		$1 == "process_open_fds" { print $2, "fds of the program at port", port }
		$1 == "go_goroutines" { print $2, "goroutines of the program at port", port }
		$1 == "process_resident_memory_bytes" { print $2, "memory of the program at port", port }'
done`

// looks is how often the nodes are measured for one number: an agent that just asks OVS and the kernel something has
// nine descriptors more.
const looks = 10

// least is the least that the nodes hold in some seconds, by name.
func (c *cluster) least(ctx context.Context) (map[string]float64, error) {
	all, err := c.measure(ctx)
	for i := 1; i < looks && err == nil; i++ {
		pause(ctx, time.Second)
		var now map[string]float64
		now, err = c.measure(ctx)
		for name, n := range now {
			all[name] = min(all[name], n)
		}
	}
	return all, err
}

// measure is what the nodes hold now, by name: rows and flows of all together, for an egress IP that moves takes its
// own along; of the programs each by itself.
func (c *cluster) measure(ctx context.Context) (map[string]float64, error) {
	script := fmt.Sprintf(counting, sandbox.AgentMetricsPort, sandbox.ControllerMetricsPort)
	all := map[string]float64{}
	for _, n := range c.Nodes() {
		out, err := c.ExecIn(ctx, n.Name, "bash", "-c", script)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(out)) {
			var number float64
			value, name, _ := strings.Cut(strings.TrimSpace(line), " ")
			if _, err := fmt.Sscan(value, &number); err != nil {
				return nil, fmt.Errorf("%s: count %q: %w", n.Name, line, err)
			}
			if strings.Contains(name, "program") {
				name += " on " + n.Name
			}
			all[name] += number
		}
	}
	return all, nil
}

// openFiles lists what the programs of all nodes have open, for who looks into a number that has grown.
const openFiles = `
for program in egret-node egret-controller; do
	for pid in $(pidof "$program"); do
		echo "$program $pid"
		for fd in /proc/"$pid"/fd/*; do echo "  ${fd##*/} $(readlink "$fd")"; done
	done
done
ss -anp | grep egret`

// tellOpenFiles prints them.
func (r *run) tellOpenFiles(ctx context.Context) {
	for _, n := range r.cluster.Nodes() {
		out, err := r.cluster.ExecIn(ctx, n.Name, "bash", "-c", openFiles)
		r.say("open files on %s (%v):\n%s", n.Name, err, out)
	}
}
