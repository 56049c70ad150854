// Package peertest has agents that answer as those of package peer do, without a network.
//
// In: the versions that each agent has followed, and whether it is dead or hung. Out: its answers. A test of package
// peer holds the real server and client to the same.
package peertest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"sync"
)

// State is an agent's.
type State int

const (
	Alive State = iota
	Dead        // nobody listens
	Hung        // the kernel takes the question, and nobody answers
)

// Agent is one that may be asked.
type Agent struct {
	mu    sync.Mutex
	state State
	has   map[string]string // up to which version it has followed each kind
	Node  string
}

// Set has the agent be in a state, and have followed up to some versions.
func (a *Agent) Set(s State, has map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state, a.has = s, has
}

// Followed is peer.Server's: an agent that has not followed says so.
func (a *Agent) Followed(_ context.Context, versions map[string]string) (map[string]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for kind, version := range versions {
		have, _ := strconv.Atoi(a.has[kind])
		if want, err := strconv.Atoi(version); err != nil || have < want {
			return nil, fmt.Errorf("%s are at %s, not at %q", kind, a.has[kind], version)
		}
	}
	return a.has, nil
}

// Agents are those at some addresses.
type Agents map[netip.AddrPort]*Agent

// Ask is peer.Ask.
func (a Agents) Ask(ctx context.Context, node string, _ netip.Addr, to netip.AddrPort,
	versions map[string]string) (map[string]string, error) {
	agent := a[to]
	if agent == nil || agent.isState(Dead) {
		return nil, errors.New("connection refused")
	}
	if agent.isState(Hung) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if node != "" && node != agent.Node {
		return nil, errors.New("another node's agent")
	}
	return agent.Followed(ctx, versions)
}

func (a *Agent) isState(s State) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state == s
}
