package ovntest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Env is one zone's central half: Northbound, Southbound, ovn-northd.
type Env struct {
	// NB and SB are the databases' endpoints, "unix:PATH".
	NB, SB string
	dir    string
	root   string
	t      testing.TB
	procs  map[string]*exec.Cmd
	// logs are the daemons' standard errors, by name.
	logs   map[string]*bytes.Buffer
	tracer int // pid of ovn-trace, or 0
}

// Start starts everything, and ends it with the test.
func Start(t testing.TB) *Env {
	t.Helper()
	e := StartDatabases(t)
	e.StartNorthd()
	return e
}

// StartDatabases starts the two databases only: nothing then ever writes hv_cfg.
func StartDatabases(t testing.TB) *Env {
	t.Helper()
	root := Root(t)
	// Not t.TempDir: a unix socket's path has 107 bytes at most.
	dir, err := os.MkdirTemp("", "ovn")
	if err != nil {
		t.Fatal(err)
	}
	e := &Env{dir: dir, root: root, t: t, procs: map[string]*exec.Cmd{}, logs: map[string]*bytes.Buffer{}}
	e.NB, e.SB = "unix:"+e.pathOf("nb.sock"), "unix:"+e.pathOf("sb.sock")
	t.Cleanup(e.stopAll)
	for _, db := range []string{"nb", "sb"} {
		e.mustRun("usr/bin/ovsdb-tool", "create", e.pathOf(db+".db"),
			filepath.Join(root, "usr/share/ovn/ovn-"+db+".ovsschema"))
		e.StartDatabase(db)
	}
	return e
}

func (e *Env) pathOf(name string) string { return filepath.Join(e.dir, name) }

// quiet keeps what a daemon says of a slow machine out of its log, and patience is how many seconds a command has
// there.
const (
	quiet    = "-vtimeval:off"
	patience = "--timeout=60"
)

// StartDatabase starts database "nb" or "sb" again, after Kill.
func (e *Env) StartDatabase(db string) {
	e.t.Helper()
	_ = os.Remove(e.pathOf(db + ".sock"))
	e.startProgram(db, "usr/sbin/ovsdb-server", e.pathOf(db+".db"), "--remote=punix:"+e.pathOf(db+".sock"),
		"--unixctl="+e.pathOf(db+".ctl"), "-vconsole:warn", "-vfile:off", "-vsyslog:off", quiet)
	e.waitFor(e.pathOf(db + ".sock"))
}

// StartNorthd starts ovn-northd, after StartDatabases.
func (e *Env) StartNorthd() {
	e.t.Helper()
	e.startProgram("northd", "usr/bin/ovn-northd", "--ovnnb-db="+e.NB, "--ovnsb-db="+e.SB,
		"--unixctl="+e.pathOf("northd.ctl"), "-vconsole:warn", "-vfile:off", "-vsyslog:off", quiet)
	e.waitFor(e.pathOf("northd.ctl"))
}

// Kill kills database "nb" or "sb", or "northd", at once. Everything that the database had committed stays.
func (e *Env) Kill(name string) {
	e.t.Helper()
	c := e.procs[name]
	delete(e.procs, name)
	_ = c.Process.Kill()
	_ = c.Wait()
}

// Log is what database "nb" or "sb", or "northd", has said of level warn and above. Kill it before: then all is there.
func (e *Env) Log(name string) string { return e.logs[name].String() }

// Pause stops a daemon where it is, and Resume lets it go on.
func (e *Env) Pause(name string) { _ = e.procs[name].Process.Signal(syscall.SIGSTOP) }

// Resume is the end of Pause.
func (e *Env) Resume(name string) { _ = e.procs[name].Process.Signal(syscall.SIGCONT) }

// Fill has each write of the server of database "nb" or "sb" to its file fail from now on, as it does where the disk is
// full; Clear ends that. The server must have been started with SIGXFSZ ignored.
func (e *Env) Fill(db string) { e.limitFile(db, 0) }

// Clear see Fill.
func (e *Env) Clear(db string) { e.limitFile(db, unix.RLIM_INFINITY) }

func (e *Env) limitFile(db string, bytes uint64) {
	e.t.Helper()
	limit := unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(e.procs[db].Process.Pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		e.t.Fatal(err)
	}
}

func (e *Env) startProgram(name, program string, args ...string) {
	e.t.Helper()
	c := rootCommand(e.root, program, args...)
	log := &bytes.Buffer{}
	c.Stderr = log
	// Nothing may outlive a test that is killed.
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		e.t.Fatalf("start %s: %v", program, err)
	}
	e.procs[name], e.logs[name] = c, log
}

func (e *Env) waitFor(path string) {
	e.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		// The file is there before the daemon listens.
		if c, err := net.Dial("unix", path); err == nil {
			_ = c.Close()
			return
		}
	}
	e.t.Fatalf("nobody listens on %s; logs: %v", path, e.logs)
}

func (e *Env) stopAll() {
	e.stopTracer()
	for name := range e.procs {
		e.Kill(name)
	}
	if e.t.Failed() {
		for name, log := range e.logs {
			if log.Len() > 0 {
				e.t.Logf("%s said:\n%s", name, log)
			}
		}
	}
	_ = os.RemoveAll(e.dir)
}

func (e *Env) runProgram(ctx context.Context, program string, args ...string) (string, error) {
	c := rootCommand(e.root, program, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Process.Kill() })
	defer stop()
	if err := c.Wait(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

func (e *Env) mustRun(program string, args ...string) string {
	e.t.Helper()
	out, err := e.runProgram(e.t.Context(), program, args...)
	if err != nil {
		e.t.Fatal(err)
	}
	return out
}

// NBCtl runs ovn-nbctl, and SBCtl ovn-sbctl; the test fails when they do.
func (e *Env) NBCtl(args ...string) string {
	e.t.Helper()
	return e.mustRun("usr/bin/ovn-nbctl", append([]string{"--db=" + e.NB, patience}, args...)...)
}

// SBCtl runs ovn-sbctl.
func (e *Env) SBCtl(args ...string) string {
	e.t.Helper()
	return e.mustRun("usr/bin/ovn-sbctl", append([]string{"--db=" + e.SB, patience}, args...)...)
}

// Select prints all rows of a table as the JSON of RFC 7047, with the columns named, or all.
func (e *Env) Select(endpoint, db, table string) string {
	e.t.Helper()
	return e.mustRun("usr/bin/ovsdb-client", "transact", endpoint,
		fmt.Sprintf(`[%q,{"op":"select","table":%q,"where":[]}]`, db, table))
}

// Sync waits until ovn-northd has compiled what the Northbound now holds into the Southbound.
func (e *Env) Sync(ctx context.Context) error {
	e.stopTracer()
	_, err := e.runProgram(ctx, "usr/bin/ovn-nbctl", "--db="+e.NB, patience, "--wait=sb", "sync")
	return err
}
