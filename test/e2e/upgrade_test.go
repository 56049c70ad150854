package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/internal/sandbox/rootfs"
	"github.com/egret-net/egret/test/harness"
	"github.com/egret-net/egret/test/traffic"
)

// formerCommit is the last commit whose agents say in two lists of an EgressNode what they hold, and have one set of
// pods for all addresses of an object on a host.
const formerCommit = "338da51"

// TestUpgrade: the former agent runs beside the present one in one cluster, in both orders of upgrade and after a
// downgrade. Each reads what the other reports: addresses move between their nodes, no connection fails, nothing leaves
// with another source, and no datagram is lost but those for which the sandbox's switches had no room, and those in
// tunnels when a host's routes change.
//
// Addresses move from the present agent to the former and back, between former agents while a present one steers pods
// to them, and between present ones.
func TestUpgrade(t *testing.T) {
	var wrong steps
	t.Cleanup(func() { t.Log(wrong) }) // once more, below what logs of agents tell
	c := theCluster(t)
	c.inOneMode(t)
	former := buildFormerAgent(t)
	t.Run("hosts-first", func(t *testing.T) {
		u := c.upgrading(t, former, &wrong, "upgrade-hosts", 164)
		u.upgrade(u.from)
		u.move(u.from, u.to)
		u.move(u.to, u.from)
		u.upgrade(u.to)
		u.upgrade(c.nodes[0])
		u.move(u.from, u.to)
		u.ends()
	})
	t.Run("pods-first", func(t *testing.T) {
		u := c.upgrading(t, former, &wrong, "upgrade-pods", 165)
		u.upgrade(c.nodes[0])
		u.move(u.from, u.to)
		u.upgrade(u.to)
		u.upgrade(u.from)
		u.move(u.to, u.from)
		u.ends()
	})
}

// upgrading is a cluster in which all nodes run the former agent.
type upgrading struct {
	*holding
	stops map[string]func() // by node, of the former agents
	pods  []func()          // end what they send
	wrong *steps
	*changes
}

// steps are those in which something was wrong.
type steps []string

func (s steps) String() string {
	return fmt.Sprintf("%d steps were wrong\n%s", len(s), strings.Join(s, "\n"))
}

func (c *cluster) upgrading(t *testing.T, former string, wrong *steps, name string, number int) *upgrading {
	t.Helper()
	c.noneEnds(t)
	u := &upgrading{holding: c.holding(t, name, number), stops: map[string]func(){}, wrong: wrong,
		changes: c.routeChanges(t)}
	for _, p := range []string{"a", "b", "c"} {
		u.pods = append(u.pods, u.connecting(p))
	}
	time.Sleep(time.Second) // so that connections are on their way
	for _, n := range c.nodes {
		u.step("downgrade of "+n.Name, func() {
			u.stops[n.Name] = c.runFormerAgent(t, n, former)
			u.e.readyOn(u.from)
		})
	}
	return u
}

// noneEnds waits until the pods of former tests are gone: a switch stands still for a moment when it loses a port, and
// a node differs from its plan until the port's rows have gone.
func (c *cluster) noneEnds(t *testing.T) {
	t.Helper()
	within(t, podsTimeout, func() error {
		list, err := c.api.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, n := range list.Items {
			if n.DeletionTimestamp != nil {
				return fmt.Errorf("namespace %s has not ended", n.Name)
			}
		}
		return nil
	})
}

// upgrade has a node run the present agent, and waits until its targets hold what that wants.
func (u *upgrading) upgrade(n sandbox.Member) {
	u.t.Helper()
	u.step("upgrade of "+n.Name, func() {
		u.stops[n.Name]()
		u.c.startAgent(u.t, n.Name)
		u.c.inSync(u.t, n.Name)
		u.e.ready()
	})
}

// move has the addresses go to the other node.
func (u *upgrading) move(from, to sandbox.Member) {
	u.t.Helper()
	u.step("move from "+from.Name+" to "+to.Name, func() {
		u.c.cordon(u.t, from.Name, `"maintenance"`)
		u.e.readyOn(to)
		u.asked.onlyHolders(u.e)
		u.c.cordon(u.t, from.Name, "null")
	})
}

// queued is longer than what a busy switch has not forwarded yet waits in its queue.
const queued = 500 * time.Millisecond

// step says what was wrong and what was lost while something was done. What switches dropped before they were asked
// must not be counted as lost in this step: to ask them takes long on a busy machine, and what was queued before a
// frame that was dropped arrives later than that.
func (u *upgrading) step(name string, do func()) {
	u.t.Helper()
	before, err := harness.DropsOf(u.t.Context(), u.c.Cluster)
	must(u.t, err)
	time.Sleep(queued)
	begin := time.Now()
	do()
	took, seen := time.Since(begin), u.seen.Since(begin)
	dropped, err := harness.DropsOf(u.t.Context(), u.c.Cluster)
	must(u.t, err)
	overflows := 0
	for node := range dropped {
		dropped[node] = dropped[node].Since(before[node])
		overflows += dropped[node].Overflows()
	}
	wrong, lost := traffic.Wrong(seen, u.name+"/", u.ips), traffic.Lost(seen)
	say := fmt.Sprintf("%s %s took %s; %s, switches dropped %v, for want of room %d; while routes were read %d; with "+
		"another source: %v", begin.Format(time.TimeOnly), name, took.Round(100*time.Millisecond), lost, dropped,
		overflows, u.during(lost), wrong)
	if len(wrong) > 0 || lost.Total > overflows+u.during(lost) {
		*u.wrong = append(*u.wrong, say)
		u.t.Error(say)
		return
	}
	u.t.Log(say)
}

// ends judges all that has happened.
func (u *upgrading) ends() {
	u.t.Helper()
	u.arrive("a", "b", "c")
	for _, end := range u.pods {
		end()
	}
	u.seen.onlyFrom(u.namespace, u.ips)
	u.asked.neverTwo()
}

// runFormerAgent has a node run the former agent in the place of its own until stop, with the same arguments but those
// that it does not know: flags come with the manifests of a version.
func (c *cluster) runFormerAgent(t *testing.T, n sandbox.Member, binary string) (stop func()) {
	t.Helper()
	args := knownTo(t, binary, c.argsOf(t, n, "egret-node")[1:])
	program := "egret-node-" + formerCommit
	must(t, copyFile(binary, filepath.Join(c.etc(n), program)))
	t.Cleanup(func() { c.startAgent(t, n.Name) })
	must(t, c.StopProcess(t.Context(), n.Name, "egret-node"))
	const pidFile = "/run/egret-former.pid"
	args = append([]string{"sh", "-c", `echo $$ >"$0"; exec "$@"`, pidFile, "/etc/egret/" + program}, args...)
	enter, err := c.Command(n.Name, args...)
	must(t, err)
	log, err := os.Create(filepath.Join(t.TempDir(), n.Name+".log"))
	must(t, err)
	run := exec.Command(enter[0], enter[1:]...)
	run.Stdout, run.Stderr = log, log
	must(t, run.Start())
	stop = func() {
		_, _ = c.feed(context.Background(), n.Name, nil, "sh", "-c", "kill $(cat "+pidFile+")") // it may be gone
		_ = run.Wait()
	}
	t.Cleanup(func() {
		if stop(); t.Failed() {
			text, err := os.ReadFile(log.Name())
			t.Logf("former agent of %s: %s%v", n.Name, text, err)
		}
	})
	c.answering(t, n)
	return stop
}

// argsOf are the arguments of a process of a node, its program first.
func (c *cluster) argsOf(t *testing.T, n sandbox.Member, process string) []string {
	t.Helper()
	pid, err := c.PidOf(t.Context(), n.Name, process)
	must(t, err)
	line := c.on(t, n.Name, "cat", fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(strings.TrimRight(line, "\x00"), "\x00")
}

// knownTo are those of an agent's arguments, of the form "--FLAG VALUE", whose flag the binary's help names.
func knownTo(t *testing.T, binary string, args []string) []string {
	t.Helper()
	help, err := exec.CommandContext(t.Context(), binary, "--help").CombinedOutput()
	must(t, err)
	var known []string
	for pair := range slices.Chunk(args, 2) {
		if bytes.Contains(help, []byte("  "+strings.TrimPrefix(pair[0], "-")+" ")) {
			known = append(known, pair...)
		}
	}
	return known
}

// answering waits until a node's agent serves its metrics.
func (c *cluster) answering(t *testing.T, n sandbox.Member) {
	t.Helper()
	within(t, podsTimeout, func() error {
		_, err := scrape(t.Context(), n, sandbox.AgentMetricsPort)
		return err
	})
}

// buildFormerAgent builds the agent of formerCommit, once for each cache. A clone without that commit cannot.
func buildFormerAgent(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(rootfs.CacheDir(), "egret-node-"+formerCommit)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	archive, why := exec.CommandContext(t.Context(), "git", "-C", "../..", "archive", formerCommit), &bytes.Buffer{}
	archive.Stderr = why
	source, err := archive.Output()
	if err != nil {
		t.Skipf("no former agent to upgrade from: does this clone have commit %s? (git fetch --unshallow) %v: %s",
			formerCommit, err, why)
	}
	dir := t.TempDir()
	untar := exec.CommandContext(t.Context(), "tar", "-x", "-C", dir)
	untar.Stdin = bytes.NewReader(source)
	if out, err := untar.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", path+".new",
		"./cmd/egret-node")
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the agent of %s: %v\n%s", formerCommit, err, out)
	}
	must(t, os.Rename(path+".new", path))
	return path
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o755)
}
