package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/egret-net/egret/internal/sandbox"
)

const northbound = "/var/lib/ovn/ovnnb_db.db"

// TestBrokenDisk: a node's agent starts as after a boot, first with no room left where OVN's databases are, then, by a
// power cut, with a Northbound file that is damaged. The host has its network all the time, the agent's log says what
// to do, and pods have theirs once it was done. Gateway modes do not differ in this: it runs in one.
func TestBrokenDisk(t *testing.T) {
	c := theCluster(t)
	c.inOneMode(t)
	c.serveOnNodes(t)
	d := &disk{t: t, c: c, n: c.namespace(t, nil), node: c.nodes[2]}
	t.Run("full", func(t *testing.T) { d.with(t).full() })
	t.Run("damaged", func(t *testing.T) { d.with(t).damaged() })
}

// disk is that of a node.
type disk struct {
	t    *testing.T
	c    *cluster
	n    *namespace
	node sandbox.Member
	told int // Events about it
}

func (d *disk) with(t *testing.T) *disk {
	n := *d.n
	n.t = t
	d.t, d.n = t, &n
	return d
}

// fill puts the databases on a small disk, which it fills.
const fill = `set -e
mkdir /run/small
mount -t tmpfs -o size=4m tmpfs /run/small
cp /var/lib/ovn/* /run/small
mount --bind /run/small /var/lib/ovn
cat /dev/zero > /var/lib/ovn/filler || true
rm /run/egret/booted`

// full ends with the small disk still there: the power cut that follows takes it away.
func (d *disk) full() {
	processes := []string{"egret-node", "ovn-northd", "ovsdb-nb", "ovsdb-sb"}
	for _, p := range processes {
		must(d.t, d.c.StopProcess(d.t.Context(), d.node.Name, p))
	}
	begin := d.logged()
	d.c.on(d.t, d.node.Name, "sh", "-c", fill)
	for _, p := range processes {
		must(d.t, d.c.StartProcess(d.t.Context(), d.node.Name, p))
	}
	d.says(begin)
	d.hostWorks()
	d.c.on(d.t, d.node.Name, "rm", "/var/lib/ovn/filler")
	d.heals("after-full")
}

// damaged is left as it was found.
func (d *disk) damaged() {
	begin := d.logged()
	d.c.powerOff(d.t, d.node.Name)
	file := filepath.Join(d.c.Options().StateDir, d.c.Options().Name, "nodes", d.node.Name, "disk/upper", northbound)
	must(d.t, os.WriteFile(file, []byte("OVSDB JSON 7 garbage\nnothing\n"), 0o600))
	must(d.t, d.c.PowerOn(d.t.Context(), d.node.Name))
	d.says(begin)
	d.hostWorks()
	d.c.on(d.t, d.node.Name, "rm", northbound)
	d.heals("after-damage")
}

// log is the agent's, from a place on.
func (d *disk) log(from int) string {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.c.etc(d.node), "../log/egret/egret-node.log"))
	must(d.t, err)
	return string(text[from:])
}

func (d *disk) logged() int { return len(d.log(0)) }

// says waits until the agent has said what is wrong and what to do, in its log and in an Event.
func (d *disk) says(from int) {
	d.t.Helper()
	within(d.t, podsTimeout, func() error {
		if said := d.log(from); !strings.Contains(said, "a damaged file may be removed") {
			return fmt.Errorf("the agent of %s says nothing of its Northbound; the end of its log: %s", d.node.Name,
				said[max(0, len(said)-1000):])
		}
		return nil
	})
	d.told++
	within(d.t, podsTimeout, func() error {
		events := slices.DeleteFunc(d.c.eventsOf(types.UID(d.node.Name)), func(e string) bool {
			return !strings.HasPrefix(e, "Warning PodsHaveNoNetwork ")
		})
		if len(events) < d.told {
			return fmt.Errorf("node %s has %d Events about it, want one a fault: %q", d.node.Name, len(events), events)
		}
		return nil
	})
}

// hostWorks: the host's addresses are on the gateway bridge, and its own connections get out by it, to hosts outside
// and to other nodes. (Before that, OVS in userspace leaves the kernel what it sees of the uplink.)
func (d *disk) hostWorks() {
	d.t.Helper()
	within(d.t, soon, func() error {
		have := d.c.on(d.t, d.node.Name, "ip", "-brief", "address", "show", "breth0")
		for _, ip := range d.node.IPs {
			if !strings.Contains(have, " "+ip.String()+"/") {
				return fmt.Errorf("%s is not on the bridge: %s", ip, have)
			}
		}
		return nil
	})
	d.c.from(d.t, d.node).to(d.c.outside(0)).soonArrivesAs(d.node.IPs...)
	d.c.from(d.t, d.node).to(nodeServer(d.c.nodes[0])).arrivesAs(d.node.IPs...)
}

func (d *disk) heals(name string) {
	d.t.Helper()
	within(d.t, podsTimeout, func() error { return d.c.isReady(d.node.Name) })
	d.n.runs(pod{name: name, node: d.node})
	d.n.from(name).to(d.c.outside(0)).soonArrivesAs(d.node.IPs...)
}
