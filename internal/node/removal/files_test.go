package removal

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/node"
)

// files makes a node's folders, and returns options that name them, and the files that are there.
func files(t *testing.T) (o Options, list func() []string) {
	root := t.TempDir()
	at := func(path string) string { return filepath.Join(root, path) }
	for _, file := range []string{"bin/egret-cni", "bin/portmap", "run/egret/cni.sock", "run/egret/agent.sock",
		"run/egret/booted", "run/egret/theirs", "run/ovn/northd.pid", "ovn/ovnnb_db.db", "ovn/.ovnnb_db.db.~lock~",
		"ovs/conf.db", "run/ovs/db.sock"} {
		if err := os.MkdirAll(filepath.Dir(at(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o = Options{CNIBinDir: at("bin"), OVNState: at("ovn"), OVSState: at("ovs"), Options: node.Options{
		CNISocket: at("run/egret/cni.sock"), AgentSocket: at("run/egret/agent.sock"), OVSRunDir: at("run/ovs"),
		BootMarker: at("run/egret/booted"), Northbound: "unix:" + at("run/ovn/ovnnb_db.sock"),
		Southbound: "unix:" + at("run/ovn/ovnsb_db.sock")}}
	return o, func() (out []string) {
		if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				out = append(out, strings.TrimPrefix(path, root+"/"))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// TestRemoveFiles: Open vSwitch's files go when it is Egret's and does not run, and other people's never.
func TestRemoveFiles(t *testing.T) {
	theirs, ofOVS := []string{"bin/portmap", "run/egret/theirs"}, []string{"ovs/conf.db", "run/ovs/db.sock"}
	for _, c := range []struct {
		runs, ours bool
		left       []string
	}{
		{true, true, append(ofOVS, theirs...)}, {false, false, append(ofOVS, theirs...)}, {false, true, theirs},
	} {
		o, list := files(t)
		if !c.ours {
			o.OVSState = ""
		}
		for range 2 {
			if err := removeFiles(o, c.runs); err != nil {
				t.Error(err)
			}
		}
		have := list()
		slices.Sort(have)
		if want := slices.Sorted(slices.Values(c.left)); !slices.Equal(have, want) {
			t.Errorf("Open vSwitch runs %t, is ours %t: left are %v, want %v", c.runs, c.ours, have, want)
		}
	}
}

// TestRunningAgentIsNotRemoved: nothing is touched while an agent answers. Sockets that nobody listens at do not count.
func TestRunningAgentIsNotRemoved(t *testing.T) {
	dir, err := os.MkdirTemp("", "egret") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	o, _ := files(t)
	o.AgentSocket = filepath.Join(dir, "agent.sock")
	l, err := net.Listen("unix", o.AgentSocket)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := checkStopped(t.Context(), runners(o)); err == nil || !strings.HasPrefix(err.Error(), "egret-node still") {
		t.Errorf("got %v while an agent runs", err)
	}
	l.Close()
	if err := checkStopped(t.Context(), runners(o)); err != nil {
		t.Errorf("got %v when it has ended", err)
	}
}

// TestNoOtherFolderIsEmptied: options that name no folder of OVN's or Open vSwitch's own are refused. Run asks first.
func TestNoOtherFolderIsEmptied(t *testing.T) {
	for what, change := range map[string]func(*Options){
		"a database over TCP":       func(o *Options) { o.Northbound = "tcp:127.0.0.1:6641" },
		"a socket in /":             func(o *Options) { o.Northbound = "unix:/ovnnb_db.sock" },
		"no folder of databases":    func(o *Options) { o.OVNState = "" },
		"Open vSwitch's state in /": func(o *Options) { o.OVSState = "/var/.." },
	} {
		o, _ := files(t)
		if change(&o); checkFolders(o) == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if o, _ := files(t); checkFolders(o) != nil {
		t.Error(checkFolders(o))
	}
}
