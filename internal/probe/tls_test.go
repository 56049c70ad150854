package probe_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/probe/probetest"
)

func dialed(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

// TestTLS: both sides show certificates of the authority; who has none, one of another, or another's name, is not
// spoken with.
func TestTLS(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	good, other := probetest.NewAuthority(t, "good"), probetest.NewAuthority(t, "other")
	files := good.Write(t.TempDir(), "ovn")
	l.agent(71, files)
	l.agent(72, other.Write(t.TempDir(), "ovn"))
	l.agent(73, good.Write(t.TempDir(), "web"))
	l.agent(74, probe.Files{})
	l.probe(probe.Options{Self: "n9", Port: l.port, Grace: 2 * time.Second, TLS: files}, 71, 72, 73, 74)
	for _, n := range []string{"n72", "n73", "n74"} {
		l.soon(n, "AgentAway")
	}
	if l.last("n71") != "-" {
		t.Errorf("told %v", l.told)
	}
	foreign := other.Write(t.TempDir(), "ovn")
	foreign.CA = files.CA
	stranger := newLab(t)
	stranger.port = l.port
	stranger.probe(probe.Options{Self: "n9", Port: l.port, Grace: 600 * time.Millisecond, TLS: foreign}, 71)
	stranger.soon("n71", "AgentAway") // it shows a certificate of another authority
}

// TestPartOfTheFiles: whatever is missing, both sides do without TLS.
func TestPartOfTheFiles(t *testing.T) {
	t.Parallel()
	all := probetest.NewAuthority(t, "good").Write(t.TempDir(), "ovn")
	for node, part := range map[int]probe.Files{91: {CA: all.CA}, 92: {Cert: all.Cert, Key: all.Key},
		93: {Cert: all.Cert, CA: all.CA}} {
		t.Run(fmt.Sprint(node), func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.agent(node, part)
			l.probe(probe.Options{Self: "n9", Port: l.port, Grace: 2 * time.Second, TLS: part}, node)
			l.quiet(11 * time.Second) // an agent that never answered is away after ten
		})
	}
}

// TestFilesThatCannotBeLoaded: neither side begins, and both say which flag is to be looked at.
func TestFilesThatCannotBeLoaded(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	good := probetest.NewAuthority(t, "good").Write(t.TempDir(), "ovn")
	for flag, files := range map[string]probe.Files{
		"--nb-client-privkey": {Cert: good.Cert, Key: "/nowhere", CA: good.CA},
		"--nb-client-cacert":  {Cert: good.Cert, Key: good.Key, CA: "/nowhere"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for side, err := range map[string]error{
			"agent": probe.Serve(ctx, l.listen(94), files, slog.New(slog.DiscardHandler)),
			"controller": probe.New(probe.Options{Total: time.Second, Port: l.port, TLS: files,
				Log: slog.New(slog.DiscardHandler)}).Run(ctx),
		} {
			if err == nil || !strings.Contains(err.Error(), flag) {
				t.Errorf("%s: have %v, want a word about %s", side, err, flag)
			}
		}
	}
}

// TestReload: certificates and authority are exchanged on both sides while they run, and sessions bounce; nobody is
// told anything.
func TestReload(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	first, second := probetest.NewAuthority(t, "first"), probetest.NewAuthority(t, "second")
	agent, another := first.Write(dirs[0], "ovn"), first.Write(dirs[1], "ovn")
	stop := l.agent(81, agent)
	l.agent(82, another)
	l.probe(probe.Options{Self: "n9", Port: l.port, Grace: 15 * time.Second, TLS: first.Write(dirs[2], "ovn")}, 81, 82)
	l.quiet(2 * time.Second)
	for _, dir := range dirs {
		second.Write(dir, "ovn")
	}
	stop()
	l.agent(81, agent) // the session bounces, and finds the new certificates; that of 82 goes on with the old ones
	l.quiet(17 * time.Second)

	old := newLab(t)
	old.port = l.port
	old.probe(probe.Options{Self: "n9", Port: l.port, Grace: 600 * time.Millisecond,
		TLS: first.Write(t.TempDir(), "ovn")}, 82)
	old.soon("n82", "AgentAway") // 82 was not restarted, and shows the new one
}
