package forward

import (
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/planetest"
)

func state(accepts ...plan.Accept) *plan.State {
	s := plan.New()
	for _, a := range accepts {
		s.Accepts.Put(planetest.Owner("gateway"), a, plan.None{})
	}
	return s
}

var (
	from = []netip.Addr{netip.MustParseAddr("169.254.169.3"), netip.MustParseAddr("fd69::3")}
	a    = state(plan.Accept{Dev: "mp0"}, plan.Accept{Dev: "mp0", Out: true}, plan.Accept{Dev: "mp0", V6: true},
		plan.Accept{Dev: "br0", Src: from[0]}, plan.Accept{Dev: "br0", V6: true, Src: from[1]},
		plan.Accept{Dev: "mp0", Port: 9413}, plan.Accept{Dev: "mp0", V6: true, Port: 9413})
	b = state(plan.Accept{Dev: "mp0"}, plan.Accept{Dev: "mp1"}, plan.Accept{Dev: "br1", Src: from[0]},
		plan.Accept{Dev: "mp0", Port: 9414})
)

// rig works on any Tables: the fake, or the commands in a network namespace of the test's own.
func rig(t *testing.T, tables Tables) *planetest.Rig {
	run := func(t *testing.T, v6 bool, args ...string) string {
		out, err := tables.Run(t.Context(), v6, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	dump := func(t *testing.T, ours bool) string {
		var lines []string
		for _, v6 := range []bool{false, true} {
			for line := range strings.Lines(run(t, v6, "-S", "FORWARD") + run(t, v6, "-S", "INPUT")) {
				if a, is := parseRule(line, v6); is && ours {
					lines = append(lines, "accept "+a.String()+"\n")
				} else if !is && !ours && !strings.HasPrefix(line, "-P") {
					lines = append(lines, line)
				}
			}
		}
		slices.Sort(lines)
		return strings.Join(lines, "")
	}
	return &planetest.Rig{
		New: func(*testing.T) plane.Plane { return New(tables) }, A: a, B: b,
		Dump:        func(t *testing.T) string { return dump(t, true) },
		Text:        func(s *plan.State) string { return s.Text() },
		PutForeign:  func(t *testing.T) { run(t, false, "-I", "FORWARD", "-i", "mp0", "-j", "ACCEPT") },
		DumpForeign: func(t *testing.T) string { return dump(t, false) },
		DeleteOurs: func(t *testing.T) {
			run(t, false, append([]string{"-D"}, ruleSpec(plan.Accept{Dev: "mp0"})...)...)
		},
	}
}

func TestFake(t *testing.T) {
	planetest.Run(t, func(t *testing.T) *planetest.Rig {
		f := &Fake{}
		r := rig(t, f)
		r.Writes = func() int { return f.Writes }
		return r
	})
}

func TestCommands(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for a network namespace")
	}
	planetest.Run(t, func(t *testing.T) *planetest.Rig {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and its namespace with it
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Fatal(err)
		}
		return rig(t, Commands{})
	})
}

// TestForeignMap: the commands that are installed hold rules in a chain to which somebody has added one of nftables'
// own that iptables has no word for. Whether they can list it is theirs: iptables-nft 1.8.9 cannot.
func TestForeignMap(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for a network namespace")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and its namespace with it
	must(t, unix.Unshare(unix.CLONE_NEWNET))
	p, c := New(Commands{}), Commands{}
	must(t, p.Grow(t.Context(), b))
	rule := exec.CommandContext(t.Context(), "nft", "add rule ip filter FORWARD ct state vmap { invalid : drop }")
	out, err := rule.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, unlisted := c.Run(t.Context(), false, "-S", "FORWARD")
	t.Logf("listing it: %v", unlisted)
	p.Outdated()
	for _, want := range []*plan.State{b, a} {
		must(t, p.Grow(t.Context(), want))
		must(t, p.Shrink(t.Context(), want))
		for row := range b.Accepts.Rows() {
			if there := p.runIptables(t.Context(), row, "-C") == nil; there != has(want, row) {
				t.Errorf("rule %s is there: %v", row, there)
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestHostileDevices: what iptables would read as several devices, or as an option, is refused alone.
func TestHostileDevices(t *testing.T) {
	for _, dev := range []string{"eth0\n", "+", "eth+", "-j", "", "a b", "../x"} {
		fake := &Fake{}
		err := New(fake).Grow(t.Context(), state(plan.Accept{Dev: dev}, plan.Accept{Dev: "ovn-k8s-mp0"}))
		if r := plane.Refusals(err); len(r) != 1 || !plane.OnlyRefusals(err) || fake.Writes != 1 {
			t.Errorf("device %q: %v, %d writes", dev, err, fake.Writes)
		}
	}
}

func has(s *plan.State, a plan.Accept) bool {
	_, is := s.Accepts[a]
	return is
}
