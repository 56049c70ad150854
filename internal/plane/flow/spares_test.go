package flow

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/ovs/ovstest"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// spared is a plane on a real switch, whose commands can be taken away.
type spared struct {
	*Plane
	s       *ovstest.Switch
	command string // its file
	want    *plan.State
	flows   int
}

func newSpared(t *testing.T, ctx context.Context) *spared {
	s, _ := start(t)
	x := &spared{s: s, command: s.CommandPath("ovs-ofctl"), want: plan.New()}
	x.Plane = New(ctx, x.command, s.RunDir, testPorts, slog.New(slog.DiscardHandler))
	return x
}

// add has one flow more.
func (x *spared) add(t *testing.T) error {
	x.flows++
	now := &plan.Rows{}
	flow := plan.Flow{Bridge: "br0", Priority: 100, Match: "udp,tp_dst=" + strconv.Itoa(x.flows)}
	plan.Add(&now.Flows, flow, "drop")
	x.want.Replace(planetest.Owner(strconv.Itoa(x.flows)), &plan.Rows{}, now)
	return x.Grow(t.Context(), x.want)
}

func (x *spared) spares() *spares { return x.switches.(ofctl).spares }

func (x *spared) spare() *command {
	s := x.spares()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready["br0"]
}

// await waits until a spare is there, and is ovs-ofctl: what CommandPath makes begins as a shell.
func (x *spared) await(t *testing.T) *command {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		c := x.spare()
		if c == nil {
			continue
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", c.cmd.Process.Pid))
		if err == nil && strings.Contains(string(line), "ld-linux") {
			return c
		}
	}
	t.Fatal("no command was started ahead")
	return nil
}

func (x *spared) holds(t *testing.T) {
	t.Helper()
	if have := strings.Count(dump(x.s, true), "actions"); have != x.flows {
		t.Errorf("the switch has %d flows, want %d", have, x.flows)
	}
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestChangesNeedNoStart: a change of flows, after a first one, starts no process: it is given to one that was started
// before.
func TestChangesNeedNoStart(t *testing.T) {
	x := newSpared(t, t.Context())
	fatal(t, x.add(t))
	x.await(t)
	fatal(t, os.Rename(x.command, x.command+".away"))
	if err := x.add(t); err != nil {
		t.Errorf("without a command that can be started: %v", err)
	}
	x.holds(t)
	if x.add(t) == nil {
		t.Error("a second change went through, though the spare was used and there is no command")
	}
	fatal(t, os.Rename(x.command+".away", x.command))
	fatal(t, x.Grow(t.Context(), x.want))
	x.holds(t)
}

// TestSparesThatEnd: one that was killed before it was used, or while it is, keeps no flow out.
func TestSparesThatEnd(t *testing.T) {
	x := newSpared(t, t.Context())
	fatal(t, x.add(t))
	c := x.await(t)
	fatal(t, c.cmd.Process.Kill())
	<-c.done
	if err := x.add(t); err != nil {
		t.Errorf("a spare that had been killed: %v", err)
	}
	x.holds(t)

	c = x.await(t)
	fatal(t, c.cmd.Process.Signal(syscall.SIGSTOP))
	go func() {
		for x.spare() == c {
			time.Sleep(time.Millisecond)
		}
		c.cmd.Process.Kill()
	}()
	if err := x.add(t); err != nil {
		t.Errorf("a spare that was killed while it was used: %v", err)
	}
	x.holds(t)
}

// TestSparesEnd: they end with their plane's context, and none is started after it.
func TestSparesEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	x := newSpared(t, ctx)
	fatal(t, x.add(t))
	c := x.await(t)
	cancel()
	<-c.done
	x.spares().takeFor("br0")
	x.spares().startFor("br0", func(context.Context) (*command, error) {
		t.Error("a command was started")
		return nil, nil
	})
}
