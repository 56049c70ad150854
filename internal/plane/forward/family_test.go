package forward

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"github.com/egret-net/egret/internal/plan"
)

// without6 is a host on which ip6tables does not work, or is not there.
type without6 struct {
	Fake
	err error
}

func (w *without6) Run(ctx context.Context, v6 bool, args ...string) (string, error) {
	if v6 && w.err != nil {
		return "", w.err
	}
	return w.Fake.Run(ctx, v6, args...)
}

// TestOtherFamilyUnreadable: where the kernel has no IPv6, or its rules cannot be read, IPv4's are held if nothing else
// is wanted; once it is, that is an error until it can be read.
func TestOtherFamilyUnreadable(t *testing.T) {
	f := &without6{err: errors.New("can't initialize ip6tables table `filter': Address family not supported")}
	p, both := New(f), state(plan.Accept{Dev: "mp0"}, plan.Accept{Dev: "mp0", V6: true})
	if err := p.Grow(t.Context(), state(plan.Accept{Dev: "mp0"})); err != nil || len(f.Rules[false]) != 1 {
		t.Errorf("IPv4 alone: %v, rules %v", err, f.Rules)
	}
	if err := p.Grow(t.Context(), both); err == nil {
		t.Error("rules of IPv6 are wanted, and cannot be read")
	}
	f.err = nil
	f.Rules[true] = []string{f.Rules[false][0]} // of before
	if err := p.Grow(t.Context(), both); err != nil || len(f.Rules[true]) != 1 || len(f.Rules[false]) != 1 {
		t.Errorf("it can be read again: %v, rules %v", err, f.Rules)
	}
}

// unlistable answers as iptables-nft 1.8.9 does where a rule of nftables with a map is in the chain.
type unlistable struct {
	Fake
	is bool
}

func (u *unlistable) Run(ctx context.Context, v6 bool, args ...string) (string, error) {
	if u.is && args[0] == "-S" {
		return "", errors.New("chain `FORWARD' in table `filter' is incompatible, use 'nft' tool")
	}
	return u.Fake.Run(ctx, v6, args...)
}

// TestChainThatCannotBeListed: it holds what is wanted, each rule once, and loses what is no longer wanted, whether the
// chain became so before the agent started or later.
func TestChainThatCannotBeListed(t *testing.T) {
	u := &unlistable{is: true}
	holds := func(what string, p *Plane, want *plan.State, rules int) {
		t.Helper()
		for range 2 {
			err := errors.Join(p.Grow(t.Context(), want), p.Shrink(t.Context(), want))
			if have := len(u.Rules[false]) + len(u.Rules[true]); err != nil || have != rules {
				t.Errorf("%s: %v, %d rules of %d: %v", what, err, have, rules, u.Rules)
			}
			p.Forget()
		}
	}
	p := New(u)
	holds("new", p, a, 7)
	holds("changed", p, b, 4)
	holds("another agent", New(u), b, 4)
	u.Rules[false] = nil
	p.Outdated()
	holds("flushed", p, b, 4)
	u.is = false
	holds("listed again", p, a, 7)
	u.is = true
	p.Outdated()
	holds("no longer listed", p, b, 4)
}

// TestListedTheNextTime: what cannot be listed for a moment is, and loses what a former agent left.
func TestListedTheNextTime(t *testing.T) {
	f := &without6{}
	grown := New(f).Grow(t.Context(), a)
	f.err = errors.New("another app is currently holding the xtables lock")
	p, none := New(f), state()
	if err := errors.Join(grown, p.Grow(t.Context(), none), p.Shrink(t.Context(), none)); err != nil {
		t.Fatal(err)
	}
	f.err = nil
	err := errors.Join(p.Grow(t.Context(), none), p.Shrink(t.Context(), none))
	if len(f.Rules[true])+len(f.Rules[false]) > 0 || err != nil {
		t.Errorf("%v, rules %v", err, f.Rules)
	}
}

// TestOtherFamilyNotInstalled: IPv4 has its rules all the same, whichever is looked at first.
func TestOtherFamilyNotInstalled(t *testing.T) {
	for range 20 {
		f := &without6{err: fmt.Errorf("run: %w", exec.ErrNotFound)}
		if err := New(f).Grow(t.Context(), a); err != nil || len(f.Rules[false]) != 4 {
			t.Fatalf("%v, rules %v", err, f.Rules)
		}
	}
}
