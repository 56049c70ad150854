// Package ovstest starts a real ovsdb-server and ovs-vswitchd for a test.
//
// In: the Debian root folder that the sandbox builds. Out: a run directory of its own with both daemons, which the test
// may kill and start again, and the OVS commands. Nothing of the machine's own Open vSwitch is touched: with the dummy
// datapath no network device is made and no privilege is needed; with the netdev datapath the daemons live in the
// network namespace of the thread that starts them.
package ovstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Datapath is what carries packets.
type Datapath int

const (
	Dummy  Datapath = iota // every device is a dummy one; packets are injected by `netdev-dummy/receive`
	Netdev                 // the userspace datapath on real devices
)

// Switch is one Open vSwitch.
type Switch struct {
	RunDir string // holds db.sock, the control sockets, the pid files and the logs

	t        testing.TB
	root     string
	datapath Datapath
	db, vs   *exec.Cmd
}

// Start makes a new database and runs both daemons until the test ends. Without the root folder the test is skipped.
func Start(t testing.TB, datapath Datapath) *Switch {
	t.Helper()
	root := findRoot(t)
	// Paths of unix sockets have at most 107 bytes, which t.TempDir with a long test name exceeds.
	dir, err := os.MkdirTemp("", "ovs")
	if err != nil {
		t.Fatalf("make a run directory: %v", err)
	}
	s := &Switch{RunDir: dir, t: t, root: root, datapath: datapath}
	t.Cleanup(func() {
		s.KillVSwitchd()
		s.KillDB()
		os.RemoveAll(dir)
	})
	s.runProgram("usr/bin/ovsdb-tool", "create", dir+"/conf.db", s.root+"/usr/share/openvswitch/vswitch.ovsschema")
	s.StartDB()
	s.Vsctl("--no-wait", "init")
	s.StartVSwitchd()
	return s
}

// DB is the database's endpoint, as OVS writes it.
func (s *Switch) DB() string { return "unix:" + s.RunDir + "/db.sock" }

// StartDB runs ovsdb-server and waits for its socket.
func (s *Switch) StartDB() {
	s.t.Helper()
	s.db = s.startProgram("usr/sbin/ovsdb-server", s.RunDir+"/conf.db", "--remote=punix:"+s.RunDir+"/db.sock",
		"--pidfile="+s.RunDir+"/ovsdb-server.pid", "--log-file="+s.RunDir+"/ovsdb-server.log")
	s.awaitProgram("the database", s.RunDir+"/ovsdb-server.pid")
}

// KillDB ends ovsdb-server as a crash does.
func (s *Switch) KillDB() { s.killProgram(&s.db) }

// StartVSwitchd runs ovs-vswitchd and waits for its control socket.
func (s *Switch) StartVSwitchd() {
	s.t.Helper()
	args := []string{s.DB(), "--pidfile=" + s.RunDir + "/ovs-vswitchd.pid", "--log-file=" + s.RunDir +
		"/ovs-vswitchd.log"}
	if s.datapath == Dummy {
		args = append(args, "--enable-dummy=override")
	}
	s.vs = s.startProgram("usr/sbin/ovs-vswitchd", append(args, "--disable-system")...)
	s.awaitProgram("ovs-vswitchd", s.RunDir+"/ovs-vswitchd.pid")
}

// KillVSwitchd ends ovs-vswitchd as a crash does: all flows and connections are gone.
func (s *Switch) KillVSwitchd() { s.killProgram(&s.vs) }

// Vsctl runs ovs-vsctl and returns what it prints.
func (s *Switch) Vsctl(args ...string) string {
	s.t.Helper()
	return s.runProgram("usr/bin/ovs-vsctl", append([]string{"--db=" + s.DB(), "--timeout=30"}, args...)...)
}

// Ofctl runs ovs-ofctl and returns what it prints. A bridge is named by Mgmt.
func (s *Switch) Ofctl(args ...string) string {
	s.t.Helper()
	return s.runProgram("usr/bin/ovs-ofctl", args...)
}

// Mgmt is the OpenFlow socket of a bridge.
func (s *Switch) Mgmt(bridge string) string { return "unix:" + s.RunDir + "/" + bridge + ".mgmt" }

// Appctl runs a command of ovs-vswitchd and returns what it prints.
func (s *Switch) Appctl(args ...string) string {
	s.t.Helper()
	return s.runProgram("usr/bin/ovs-appctl", append([]string{"-t", "ovs-vswitchd"}, args...)...)
}

// CommandPath is a file to run in place of `ovs-ofctl` and the like: the root folder's own, with its own libraries.
func (s *Switch) CommandPath(name string) string {
	s.t.Helper()
	path := filepath.Join(s.RunDir, "bin", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatalf("make a command directory: %v", err)
	}
	script := "#!/bin/sh\nexec " + strings.Join(s.argvOf("usr/bin/"+name), " ") + " \"$@\"\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		s.t.Fatalf("write the command %s: %v", name, err)
	}
	return path
}

// argvOf runs a program of the root folder with the folder's own loader and libraries: no chroot, so no privilege.
func (s *Switch) argvOf(program string) []string {
	lib := filepath.Join(s.root, "usr/lib")
	return []string{s.root + "/usr/lib64/ld-linux-x86-64.so.2", "--library-path", lib + "/x86_64-linux-gnu:" + lib,
		s.resolveLink(program)}
}

// resolveLink follows symbolic links as if the root folder were `/`: Debian's ovs-vswitchd is one into /etc/alternatives.
func (s *Switch) resolveLink(path string) string {
	full := filepath.Join(s.root, path)
	link, err := os.Readlink(full)
	if err != nil {
		return full
	}
	if !filepath.IsAbs(link) {
		link = filepath.Join("/", filepath.Dir(path), link)
	}
	return s.resolveLink(link)
}

func (s *Switch) programCommand(program string, args ...string) *exec.Cmd {
	argv := append(s.argvOf(program), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	for _, v := range []string{"OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"} {
		cmd.Env = append(cmd.Env, v+"="+s.RunDir)
	}
	return cmd
}

func (s *Switch) runProgram(program string, args ...string) string {
	s.t.Helper()
	out, err := s.programCommand(program, args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return string(out)
}

func (s *Switch) startProgram(program string, args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := s.programCommand(program, args...)
	// A test that panics runs no cleanup; its daemons end all the same.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("start %s: %v", program, err)
	}
	return cmd
}

func (s *Switch) killProgram(cmd **exec.Cmd) {
	if *cmd == nil {
		return
	}
	(*cmd).Process.Kill()
	(*cmd).Wait()
	*cmd = nil
	// kill -9 leaves sockets and pid files as a crash does: they are what a restart has to cope with.
}

// awaitProgram waits until pidFile names a process that answers on its control socket.
func (s *Switch) awaitProgram(what, pidFile string) {
	s.t.Helper()
	daemon := strings.TrimSuffix(filepath.Base(pidFile), ".pid")
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if s.programCommand("usr/bin/ovs-appctl", "-t", daemon, "version").Run() == nil {
			return
		}
	}
	log, _ := os.ReadFile(strings.TrimSuffix(pidFile, ".pid") + ".log")
	s.t.Fatalf("%s did not start within 5 s\n%s", what, log)
}

// findRoot is the newest root folder of the cache.
func findRoot(t testing.TB) string {
	t.Helper()
	cache := os.Getenv("EGRET_CACHE")
	if cache == "" {
		cache = "/var/cache/egret"
	}
	for _, name := range []string{"root", "root-seed"} {
		dir := filepath.Join(cache, name)
		if _, err := os.Stat(dir + "/usr/share/openvswitch/vswitch.ovsschema"); err == nil {
			return dir
		}
	}
	t.Skipf("needs the OVN root folder in %s: `egret-sandbox up` builds it", cache)
	return ""
}
