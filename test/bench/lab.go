package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/harness"
	"github.com/egret-net/egret/test/traffic"
)

// lab is where figures are measured: the sandboxes that are up.
type lab struct {
	name     string
	runs     int
	busy     time.Duration // of full load
	services int           // in services/many
	health   int           // port of the agents' health service
	keep     bool
	out, log io.Writer
	up       map[string]*cluster
}

// cluster is a sandbox with clients of its API.
type cluster struct{ *harness.Cluster }

// namespace is that of the benches' pods.
const namespace = "bench"

func (l *lab) say(format string, args ...any) { fmt.Fprintf(l.log, "# "+format+"\n", args...) }

func (l *lab) report(r result) { r.print(l.out) }

// sandbox brings up a sandbox, or takes the one that is.
func (l *lab) sandbox(ctx context.Context, suffix string, nodes int, cni sandbox.CNI,
	more ...func(*sandbox.Options)) (*cluster, error) {
	o := sandbox.Defaults()
	o.Name, o.Nodes, o.CNI, o.HealthcheckPort = l.name+suffix, nodes, cni, l.health
	for _, set := range more {
		set(&o)
	}
	if c := l.up[o.Name]; c != nil {
		return c, nil
	}
	l.say("bringing sandbox %s up", o.Name)
	if l.up == nil {
		l.up = map[string]*cluster{}
	}
	l.up[o.Name] = nil // to be taken down, whatever comes of it
	s, err := sandbox.Up(ctx, o, io.Discard)
	if err != nil {
		return nil, err
	}
	h, err := harness.Connect(s, "egret-bench")
	if err != nil {
		return nil, err
	}
	l.up[o.Name] = &cluster{h}
	return l.up[o.Name], traffic.Install(ctx, h.Cluster)
}

// unprobed is for nodes that exist in the API only: nobody answers in their place.
func unprobed(o *sandbox.Options) { o.ReachabilityTimeout = 0 }

// down removes a sandbox, unless it is to be kept.
func (l *lab) down(name string) error {
	delete(l.up, name)
	if l.keep {
		return nil
	}
	o := sandbox.Defaults()
	o.Name = name
	return sandbox.Down(o)
}

func (l *lab) close() {
	for _, name := range slices.Sorted(maps.Keys(l.up)) {
		if err := l.down(name); err != nil {
			l.say("could not remove sandbox %s: %v", name, err)
		}
	}
}
