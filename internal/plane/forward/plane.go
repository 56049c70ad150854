// Package forward is the plane of the host's own chains FORWARD and INPUT: where their policy is DROP, as with a
// firewall or a container engine on the node, the management port's packets (and pods' answers that come by the gateway
// bridge) must be accepted in that very chain, for an accept in a chain of ours would not overrule it.
//
// In: State.Accepts. Out: one rule each at the start of the chain in iptables' filter table, with our comment. Nothing
// else of the chains is read or changed. A host without iptables has no such chains, and needs nothing.
package forward

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// Comment marks our rules.
const Comment = "egret"

// Tables runs iptables (or ip6tables) with arguments and returns what it prints.
type Tables interface {
	Run(ctx context.Context, v6 bool, args ...string) (string, error)
}

// commandTimeout bounds one command, which waits for other users of the tables for 5 s.
const commandTimeout = 10 * time.Second

// Commands runs the commands of the host.
type Commands struct{}

// Run waits for other users of the tables (-w).
func (Commands) Run(ctx context.Context, v6 bool, args ...string) (string, error) {
	name := "iptables"
	if v6 {
		name = "ip6tables"
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, append([]string{"-w", "5"}, args...)...).CombinedOutput()
	if err != nil && !errors.Is(err, exec.ErrNotFound) {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), err
}

// Plane is the plane. It is not safe for concurrent use, but for Outdated.
type Plane struct {
	tables   Tables
	held     map[plan.Accept]plan.None
	unlisted map[chain]bool // those that cannot be listed, of which held may not have all
	outdated atomic.Bool    // held must be read, for the first time or again
}

var _ plane.Plane = (*Plane)(nil)

// New is a plane on tables; Commands{} is the host's.
func New(tables Tables) *Plane {
	p := &Plane{tables: tables, unlisted: map[chain]bool{}}
	p.Forget()
	return p
}

func (p *Plane) Name() string { return "forward" }

// Forget makes the next call read the chain.
func (p *Plane) Forget() { p.Outdated() }

// Outdated says that somebody else has changed the host's rules: the next call reads the chain.
func (p *Plane) Outdated() { p.outdated.Store(true) }

// Grow inserts what is missing.
func (p *Plane) Grow(ctx context.Context, want *plan.State) error {
	p.readChains(ctx)
	var refused []error
	for a := range plan.Diff(p.held, want.Accepts, plan.Same).Put {
		err := p.insertRule(ctx, a)
		if errors.Is(err, exec.ErrNotFound) {
			continue // this family's; the other one may be there
		}
		if err != nil {
			refused = append(refused,
				&plane.Refused{Plane: p.Name(), Owner: want.Accepts.Owner(a), Row: a.String(), Err: err})
			continue
		}
		p.held[a] = plan.None{}
	}
	return errors.Join(refused...)
}

// insertRule inserts a rule for one device: iptables would read another text as several, or as an option.
func (p *Plane) insertRule(ctx context.Context, a plan.Accept) error {
	if err := plane.CheckDevice(a.Dev); err != nil {
		return err
	}
	if p.unlisted[chainOf(a)] && p.runIptables(ctx, a, "-C") == nil {
		return nil // it was there before this agent
	}
	return p.runIptables(ctx, a, "-I")
}

// Shrink deletes what is ours and no longer wanted.
func (p *Plane) Shrink(ctx context.Context, want *plan.State) error {
	p.readChains(ctx)
	for a := range plan.Diff(p.held, want.Accepts, plan.Same).Del {
		if err := p.runIptables(ctx, a, "-D"); err != nil {
			return err
		}
		delete(p.held, a)
	}
	return nil
}

func (p *Plane) runIptables(ctx context.Context, a plan.Accept, command string) error {
	_, err := p.tables.Run(ctx, a.V6, append([]string{command}, ruleSpec(a)...)...)
	return err
}

func ruleSpec(a plan.Accept) []string {
	flag, out := "-i", []string{chainOf(a).name}
	if a.Out {
		flag = "-o"
	}
	if a.Src.IsValid() {
		out = append(out, "-s", netip.PrefixFrom(a.Src, a.Src.BitLen()).String())
	}
	if out = append(out, flag, a.Dev); a.Port != 0 {
		out = append(append(out, toPort...), strconv.Itoa(int(a.Port)))
	}
	return append(out, "-m", "comment", "--comment", Comment, "-j", "ACCEPT")
}

// toPort comes before a port.
var toPort = []string{"-p", "tcp", "-m", "tcp", "--dport"}

// chain is one of the host's.
type chain struct {
	name string
	v6   bool
}

var chains = []chain{{"FORWARD", false}, {"INPUT", false}, {"FORWARD", true}, {"INPUT", true}}

func chainOf(a plan.Accept) chain {
	if a.Port != 0 {
		return chain{"INPUT", a.V6}
	}
	return chain{"FORWARD", a.V6}
}

// incompatible is what iptables-nft says of a chain that it cannot list.
const incompatible = "incompatible"

// readChains lists the chains of both families, once. A chain that cannot be listed is asked for the rules that it had:
// iptables-nft (1.8.9) lists none to which somebody has added, in nftables' own language, a rule with a map
// ("incompatible, use 'nft' tool"), and checks, inserts and deletes there as in any. A kernel without IPv6 has neither,
// and there nothing is wanted of it.
func (p *Plane) readChains(ctx context.Context) {
	if !p.outdated.Swap(false) {
		return
	}
	held := map[plan.Accept]plan.None{}
	for _, c := range chains {
		out, err := p.tables.Run(ctx, c.v6, "-S", c.name)
		if p.unlisted[c] = err != nil && !errors.Is(err, exec.ErrNotFound); p.unlisted[c] {
			if !strings.Contains(err.Error(), incompatible) {
				p.outdated.Store(true) // it may be listed the next time
			}
			for a := range p.held {
				if chainOf(a) == c && p.runIptables(ctx, a, "-C") == nil {
					held[a] = plan.None{}
				}
			}
		}
		for line := range strings.Lines(out) {
			if a, ours := parseRule(line, c.v6); err == nil && ours {
				held[a] = plan.None{}
			}
		}
	}
	p.held = held
}

// parseRule reads `-A FORWARD [-s ADDRESS/LENGTH] -i DEV -m comment --comment egret -j ACCEPT`, and
// `-A INPUT -i DEV -p tcp -m tcp --dport PORT -m comment --comment egret -j ACCEPT`.
func parseRule(line string, v6 bool) (plan.Accept, bool) {
	a, f := plan.Accept{V6: v6}, strings.Fields(line)
	if len(f) == 12 && f[2] == "-s" {
		source, err := netip.ParsePrefix(f[3])
		if err != nil {
			return plan.Accept{}, false
		}
		a.Src, f = source.Addr(), slices.Delete(f, 2, 4)
	}
	if len(f) == 16 && slices.Equal(f[4:9], toPort) {
		port, err := strconv.ParseUint(f[9], 10, 16)
		if err != nil {
			return plan.Accept{}, false
		}
		a.Port, f = uint16(port), slices.Delete(f, 4, 10)
	}
	if len(f) != 10 || f[1] != chainOf(a).name || f[7] != Comment && f[7] != `"`+Comment+`"` || f[9] != "ACCEPT" ||
		f[2] != "-i" && f[2] != "-o" {
		return plan.Accept{}, false
	}
	a.Dev, a.Out = f[3], f[2] == "-o"
	return a, true
}
