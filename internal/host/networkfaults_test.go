package host

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// losing is a node of Kubernetes' view whose host is told to change; what it tells comes back from Kubernetes.
type losing struct {
	*testing.T
	w *world.World
}

// says are the node's faults after a change of its host; what it reports is in the world, and then its annotation.
func (l losing) says(change func(*route.Host)) map[netip.Prefix]string {
	l.Helper()
	h := facts(l.T, change)
	faults := NetworkFaults(l.w, l.w.Node("n1"), h)
	l.w.SetHolding(&world.Holding{Node: "n1", BootID: "boot", Faults: faults})
	l.w.SetNode(&world.Node{Name: "n1", BootID: "boot", Primary: h.Primary, CIDRs: h.CIDRs()})
	return faults
}

func (l losing) assign(ip string, to ...world.Assignment) {
	l.w.SetEgressIP(&world.EgressIP{Name: "e", Namespaces: labels.Everything(), Pods: labels.Everything(),
		IPs: []netip.Addr{netip.MustParseAddr(ip)}, Placement: world.Placement{Items: to}})
}

func without(addrs ...string) func(*route.Host) {
	return func(h *route.Host) {
		h.Addrs = slices.DeleteFunc(h.Addrs,
			func(a route.Address) bool { return slices.Contains(addrs, a.Prefix.String()) })
	}
}

// A network that is lost while an address of it is here, or nowhere, is told of until it comes back, though nothing on
// the host remembers it.
func TestLostNetworks(t *testing.T) {
	for ip, x := range map[string]struct{ network, address string }{
		"172.19.1.50": {"172.19.1.0/24", "172.19.1.2/24"}, "fc00:1::50": {"fc00:1::/64", "fc00:1::2/64"},
	} {
		l, gone := losing{t, world.New("n1", compiletest.Config(world.SharedGateway))}, without(x.address)
		l.w.SetNode(&world.Node{Name: "n1", BootID: "boot"})
		here := world.Assignment{Node: "n1", IP: netip.MustParseAddr(ip)}
		l.assign(ip, here)
		for _, step := range []struct {
			name   string
			change func(*route.Host)
			assign []world.Assignment
			faulty bool
		}{
			{"as it should be", nil, []world.Assignment{here}, false},
			{"the address goes", gone, []world.Assignment{here}, true},
			{"it is nowhere", gone, nil, true},
			{"the address is back", nil, []world.Assignment{here}, false},
			{"it goes again", gone, []world.Assignment{here}, true},
			{"another node has it", gone, []world.Assignment{{Node: "n2", IP: here.IP}}, false},
		} {
			l.assign(ip, step.assign...)
			fault := l.says(step.change)[prefix(x.network)]
			if (fault != "") != step.faulty || step.faulty &&
				!strings.Contains(fault, "no link has an address in "+x.network+" any more: ") {
				t.Errorf("%s, %s: fault %q", ip, step.name, fault)
			}
		}
	}
}

// A network that nobody asks for is no fault when it goes, nor is one whose addresses another network of the host
// takes.
func TestLossThatMattersToNobody(t *testing.T) {
	for ip, change := range map[string]func(*route.Host){
		"172.20.0.50": without("172.19.1.2/24"),
		"172.19.1.50": func(h *route.Host) {
			without("172.19.1.2/24")(h)
			h.Addrs[0].Prefix = prefix("172.19.0.9/16")
			h.Addrs[0].Dev = "eth1"
		},
	} {
		l := losing{t, world.New("n1", compiletest.Config(world.SharedGateway))}
		l.w.SetNode(&world.Node{Name: "n1", BootID: "boot"})
		l.assign(ip, world.Assignment{Node: "n1", IP: netip.MustParseAddr(ip)})
		l.says(nil)
		if faults := l.says(change); len(faults) > 0 {
			t.Errorf("%s: faults %v", ip, faults)
		}
	}
}
