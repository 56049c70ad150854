package sandbox

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/sandbox/image"
	"github.com/egret-net/egret/internal/sandbox/nodeinit"
)

// TestSandbox runs a whole one-node cluster on the plain pod network: up, exec, faults, power, a takeover, down. It
// needs root, the root folder and images (make build), and takes half a minute.
func TestSandbox(t *testing.T) {
	o := realOptions(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	t.Cleanup(func() { ipNetns(t, "delete", "somebody-else") })
	t.Cleanup(func() {
		if err := Down(o); err != nil {
			t.Error(err)
		}
		nothingLeft(t, newLayout(o))
	})
	c := up(ctx, t, o)
	node, host := c.Nodes()[0].Name, c.ExternalHosts()[0]
	ipNetns(t, "add", "somebody-else") // what follows must not mind

	t.Run("status", func(t *testing.T) {
		s := c.Status(ctx)
		if len(s.Nodes) != 1 || !s.Nodes[0].Ready || len(s.ExternalHosts) != 1 || s.Networks[0].Name != "primary" {
			t.Errorf("status %+v", s)
		}
	})
	t.Run("external host sees the node's address", func(t *testing.T) {
		for i, ip := range host.IPs {
			url := "http://" + netip.AddrPortFrom(ip, ClientIPPort).String() + "/clientip"
			client, err := netip.ParseAddrPort(string(execIn(ctx, t, c, node, "curl", "-s", "--max-time", "5", "-g",
				url)))
			if err != nil || client.Addr() != c.Nodes()[0].IPs[i] {
				t.Errorf("%s saw %s, %v, want %s", url, client, err, c.Nodes()[0].IPs[i])
			}
		}
	})
	t.Run("exec tells a failure", func(t *testing.T) {
		_, err := c.ExecIn(ctx, node, "sh", "-c", "echo why >&2; exit 3")
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(err.Error(), "why") {
			t.Errorf("error %v, want exit status 3 and why", err)
		}
	})
	t.Run("an image is loaded", func(t *testing.T) { loadsImage(ctx, t, c, node) })
	t.Run("a killed process comes back", func(t *testing.T) {
		before, err := c.PidOf(ctx, node, "containerd")
		if err != nil || before == 0 {
			t.Fatalf("pid %d, %v", before, err)
		}
		if err := c.KillProcess(ctx, node, "containerd"); err != nil {
			t.Fatal(err)
		}
		eventually(t, 10*time.Second, func() bool {
			now, err := c.PidOf(ctx, node, "containerd")
			return err == nil && now != 0 && now != before
		})
	})
	t.Run("power off and on", func(t *testing.T) { powerCycle(ctx, t, c, node) })
	t.Run("a lost control plane and host are started again", func(t *testing.T) {
		killed := endControlPlaneAndHost(t, c.layout)
		c = up(ctx, t, o)
		if s := c.Status(ctx); !s.Nodes[0].Ready || killed == 0 {
			t.Errorf("status %+v after %d processes were killed", s, killed)
		}
	})
	t.Run("other options are refused", func(t *testing.T) {
		other := o
		other.Nodes = 2
		if _, err := Up(ctx, other, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "other options") {
			t.Errorf("error %v", err)
		}
	})
}

// loadsImage: containerd has an image by the name in its archive, which lies where no node sees it.
func loadsImage(ctx context.Context, t *testing.T, c *Cluster, node string) {
	var archive, said bytes.Buffer
	const name = "localhost/loaded:1"
	if err := image.Write(&archive, image.Image{Name: name, Entrypoint: []string{"/none"}}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "loaded.tar")
	if err := writeFile(file, archive.String(), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := c.LoadImages(ctx, file, &said); err != nil || !strings.Contains(said.String(), node) {
		t.Fatalf("%v: said %q", err, &said)
	}
	if have := execIn(ctx, t, c, node, "ctr", "--namespace", "k8s.io", "images", "ls", "-q"); !bytes.Contains(have,
		[]byte(name+"\n")) {
		t.Errorf("containerd has the images\n%s", have)
	}
	if err := writeFile(file, "not an archive", 0o644); err != nil {
		t.Fatal(err)
	}
	if err := c.LoadImages(ctx, file, &said); err == nil || !strings.Contains(err.Error(), node) {
		t.Errorf("error %v for a file that is not an archive, want one that names %s", err, node)
	}
}

func powerCycle(ctx context.Context, t *testing.T, c *Cluster, node string) {
	const mark = "/etc/of-this-disk"
	execIn(ctx, t, c, node, "touch", mark)
	boot := execIn(ctx, t, c, node, "cat", "/proc/sys/kernel/random/boot_id")
	mac := execIn(ctx, t, c, node, "cat", "/sys/class/net/eth0/address")
	if err := c.PowerOff(node); err != nil {
		t.Fatal(err)
	}
	if isNetns(node) || isPlugged(c.layout, c.layout.nodeEndpoints()[0]) {
		t.Error("the node's namespace or link is there after power-off")
	}
	if _, err := c.ExecIn(ctx, node, "true"); err == nil {
		t.Error("a command ran on a node without power")
	}
	if err := c.PowerOn(ctx, node); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second,
		func() bool { _, err := c.ExecIn(ctx, node, "test", "-S", nodeinit.ControlSocket); return err == nil })
	execIn(ctx, t, c, node, "test", "-e", mark)
	if now := execIn(ctx, t, c, node, "cat", "/proc/sys/kernel/random/boot_id"); bytes.Equal(now, boot) {
		t.Errorf("boot id %s is the same after power-on", now)
	}
	if now := execIn(ctx, t, c, node, "cat", "/sys/class/net/eth0/address"); !bytes.Equal(now, mac) {
		t.Errorf("hardware address %s, was %s", now, mac)
	}
}

func endControlPlaneAndHost(t *testing.T, l layout) int {
	t.Helper()
	var found []process
	for _, file := range []string{controlPlanePID(l), filepath.Join(l.hostsDir(), l.hostEndpoints()[0].name+".pid")} {
		if p, running := runningFrom(file); running {
			found = append(found, p)
		}
	}
	if err := killAndWait(found); err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// realOptions are those of a sandbox that can run here. The program under test is built; the others are taken from
// bin/.
func realOptions(t *testing.T) Options {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces and mounts")
	}
	o := Defaults()
	o.Name, o.Nodes, o.ExternalHosts, o.CNI, o.IPFamily = "selftest", 1, 1, PTP, Dual
	o.BinDir = t.TempDir()
	for _, file := range append(imageFiles(o), o.rootDir()) {
		if _, err := os.Stat(file); err != nil {
			t.Skipf("needs the OVN root folder and the images (make build): %v", err)
		}
	}
	program, err := os.ReadFile("../../bin/egret-controlplane")
	if err != nil {
		t.Skipf("needs bin/egret-controlplane (make build): %v", err)
	}
	if err := writeFile(o.binaryPath("egret-controlplane"), string(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-trimpath", "-o", o.binaryPath("egret-sandbox"),
		"../../cmd/egret-sandbox").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return o
}

func up(ctx context.Context, t *testing.T, o Options) *Cluster {
	t.Helper()
	var out bytes.Buffer
	c, err := Up(ctx, o, &out)
	t.Logf("\n%s", &out)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func execIn(ctx context.Context, t *testing.T, c *Cluster, who string, cmd ...string) []byte {
	t.Helper()
	out, err := c.ExecIn(ctx, who, cmd...)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(out)
}

func eventually(t *testing.T, limit time.Duration, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s", limit)
		}
	}
}

func nothingLeft(t *testing.T, l layout) {
	t.Helper()
	left, err := netnsOf(l.options.Name)
	if err != nil || len(left) > 0 {
		t.Errorf("network namespaces left: %v %v", left, err)
	}
	groups, err := cgroupsOf(cgroupRoot, l.options.Name)
	if err != nil || len(groups) > 0 {
		t.Errorf("control groups left: %v %v", groups, err)
	}
	processes, err := sandboxProcesses(l, nil)
	if err != nil || len(processes) > 0 {
		t.Errorf("processes left: %v %v", processes, err)
	}
	if _, err := os.Stat(l.stateDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("state folder left: %v", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || bytes.Contains(mounts, []byte(l.stateDir())) ||
		bytes.Contains(mounts, []byte(netnsDir+"/"+l.options.Name+"-")) {
		t.Errorf("mounts left, %v:\n%s", err, mounts)
	}
}
