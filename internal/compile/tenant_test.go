package compile_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/feature/service"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// The namespaces of TestTenantStaysInItsNamespace.
const (
	victim = "victim"
	tenant = "tenant"
)

const (
	// unitsOfOne is how many units are compiled again at most when one object of the tenant changes: those of its at
	// most 15 objects, by the features, the node's, and those of what is contested.
	unitsOfOne = 60
	// victimPods is how many pods the victim has. They have more units than that.
	victimPods = 40
)

// exception is what a tenant may change of others, and why. The generator leaves such objects out.
type exception struct {
	why string
	is  func(*world.Service) bool
}

// exceptions are all ways in which a Service of one namespace changes what another namespace has.
var exceptions = []exception{
	{"a load balancer's address is taken from a Service that has it by externalIPs: users may not write that status",
		func(s *world.Service) bool { return slices.Contains(s.LoadBalancerIPs, victimExternal) }},
}

// madeAt is when the victim's objects were created; the tenant has older and younger ones.
var (
	madeAt         = time.Unix(1000, 0)
	victimExternal = compiletest.V4(192, 0, 2, 7)
	victimSource   = compiletest.EgressAddr(20)
	victimCluster  = []netip.Addr{compiletest.V4(10, 96, 2, 1), netip.MustParseAddr("fd00:10:96::201")}
)

// TestTenantStaysInItsNamespace: objects of one namespace, whatever they say, take no row from another namespace, and
// put none of its pods anywhere, but by the exceptions; and no change of one of them has others compiled again in a
// number that grows with these.
func TestTenantStaysInItsNamespace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := world.GatewayMode(rapid.SampledFrom([]string{"shared", "local"}).Draw(t, "mode"))
		w, r := victimsWorld(t, mode), service.NewRefuser()
		var changed []world.Entry
		w.FollowChanges(func(e world.Entry) { changed = append(changed, e) })
		w.FollowChanges(r.NoteChanged)
		record(w, r)
		before, mine := compile.Full(w, all.Features()), ofVictim(w)
		m := compile.NewMemo(all.Features())
		m.Update(w)
		for range rapid.IntRange(1, 10).Draw(t, "objects") {
			changed = nil
			tenantObject(t)(w)
			if rapid.Bool().Draw(t, "the controller decides") {
				record(w, r)
			}
			if n := m.Update(w); n > unitsOfOne {
				t.Fatalf("one object of the tenant had %d units compiled again: %v", n, changed)
			}
		}
		if d := cmp.Diff(mine.Text(), ofVictim(w).Text()); d != "" {
			t.Fatalf("the victim's objects want something else (-before +with the tenant):\n%s", d)
		}
		stands(t, before, m.State, mine)
		if d := cmp.Diff(namingVictims(before), namingVictims(m.State)); d != "" {
			t.Fatalf("other sets and sources name the victim's pods (-before +with the tenant):\n%s", d)
		}
	})
}

// record has the controller record which addresses Services have.
func record(w *world.World, r *service.Refuser) {
	desired, _ := r.Decide(decide.View{World: w, Now: madeAt})
	for _, d := range desired {
		w.Decide(d.Kind, d.Key, d.Decision)
	}
}

// victimsWorld has a namespace with all that one can have, seen from any node.
func victimsWorld(t *rapid.T, mode world.GatewayMode) *world.World {
	w := compiletest.Small(fmt.Sprint("n", rapid.IntRange(1, 3).Draw(t, "self")), mode)
	w.SetNamespace(&world.Namespace{Name: victim, Labels: map[string]string{"env": "prod"}})
	w.SetNamespace(&world.Namespace{Name: tenant, Labels: map[string]string{"env": "test"}})
	s := compiletest.LoadBalancer(0, victimPod(0), victimPod(1))
	s.Namespace, s.Created, s.ClusterIPs = victim, madeAt, victimCluster
	s.LoadBalancerIPs, s.ExternalIPs = victimSource, []netip.Addr{victimExternal}
	s.Pods, s.Ports[0].NodePort = labels.SelectorFromSet(labels.Set{"app": "web"}), 30080
	w.SetService(s)
	e := compiletest.EgressService(0)
	e.Namespace, e.Created, e.Host, e.InForce = victim, madeAt, "n2", [2]bool{true, true}
	for _, ip := range victimSource {
		e.Items = append(e.Items, world.Assignment{Node: "n2", IP: ip})
	}
	w.SetEgressService(e)
	byEgressIP := compiletest.EgressIP(0, "app=db", compiletest.EgressAddr(0)...)
	byEgressIP.Namespaces = labels.SelectorFromSet(labels.Set{"env": "prod"})
	for _, ip := range byEgressIP.IPs {
		byEgressIP.Items = append(byEgressIP.Items, world.Assignment{Node: "n3", IP: ip})
	}
	byEgressIP.InForce = [2]bool{true, true}
	w.SetEgressIP(byEgressIP)
	for i := range victimPods {
		p := victimPod(i)
		w.SetPod(p)
		if p.Node == w.Self {
			w.SetAttachment(compiletest.Attachment(p))
		}
	}
	return w
}

// victimPod is one behind the EgressService, or one that the EgressIP selects.
func victimPod(i int) *world.Pod {
	p := compiletest.Pod(i, fmt.Sprint("n", i/2%3+1))
	p.Namespace = victim
	return p
}

// ofVictim is what the victim's objects want, whatever others want of the same rows.
func ofVictim(w *world.World) *plan.State {
	only := map[world.Kind][]string{}
	for _, k := range []world.Kind{world.KindPod, world.KindAttachment, world.KindService,
		world.KindEgressService} {
		for _, key := range w.Keys(k) {
			if strings.HasPrefix(key, victim+"/") {
				only[k] = append(only[k], key)
			}
		}
	}
	return compile.Some(w, all.Features(), only)
}

// stands checks that all rows of the victim that stood in the whole plan stand there still.
func stands(t *rapid.T, before, now, mine *plan.State) {
	stood, stand := linesOf(before), linesOf(now)
	for _, line := range mine.Lines() {
		if stood[line] && !stand[line] {
			t.Fatalf("another's row stands in the place of the victim's: %s", line)
		}
	}
}

func linesOf(s *plan.State) map[string]bool {
	lines := map[string]bool{}
	for _, line := range s.Lines() {
		lines[line] = true
	}
	return lines
}

// namingVictims are the sets that have the victim's pods as members, and the sources of these.
func namingVictims(s *plan.State) []string {
	ips := map[string]bool{}
	for i := range victimPods {
		for _, ip := range victimPod(i).IPs {
			ips[ip.String()] = true
		}
	}
	out := map[string]bool{}
	for e := range s.SetElems.Rows() {
		if ips[e.Addr] {
			out[e.Set+" has "+e.Addr] = true
		}
	}
	for e := range s.NFTElems.Rows() {
		if ips[e.Key] {
			out["nft "+e.Set+" has "+e.Key] = true
		}
	}
	for source, to := range s.Sources.Rows() {
		if ips[source.Pod.String()] {
			out[source.Router+" gives "+source.Pod.String()+" "+to.String()] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// tenantObject is an object of the tenant that comes, changes or goes.
func tenantObject(t *rapid.T) func(*world.World) {
	i := rapid.IntRange(0, 4).Draw(t, "which")
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 0, 1:
		s := tenantService(t, i)
		if slices.ContainsFunc(exceptions, func(e exception) bool { return e.is(s) }) {
			return func(*world.World) {}
		}
		return func(w *world.World) { w.SetService(s) }
	case 2:
		e := tenantEgressService(t, i)
		return func(w *world.World) { w.SetEgressService(e) }
	case 3:
		p := tenantPod(t, i)
		return func(w *world.World) {
			if p.Node == w.Self {
				w.SetPod(p)
				w.SetAttachment(compiletest.Attachment(p))
				return
			}
			w.SetPod(p)
			w.DelAttachment(p.Key(), "veth"+p.Name)
		}
	}
	key := fmt.Sprint(tenant, "/s", i)
	return func(w *world.World) {
		w.DelEgressService(key)
		w.DelService(key)
	}
}

// tenantService asks for what is the victim's, a node's or nobody's, and leads to whomever it likes. The API server
// gives each its own cluster IP and node port.
func tenantService(t *rapid.T, i int) *world.Service {
	s := compiletest.RandomService(t, i)
	s.Namespace, s.Created = tenant, madeAt.Add(time.Duration(rapid.SampledFrom([]int{-1, 1}).Draw(t,
		"age"))*time.Second)
	asked := rapid.SampledFrom(slices.Concat(victimSource, victimCluster, victimPod(0).IPs,
		compiletest.EgressAddr(0), compiletest.EgressAddr(30+i), []netip.Addr{victimExternal, compiletest.Primary(2)}))
	s.ExternalIPs = rapid.SliceOfN(asked, 0, 3).Draw(t, "asked by externalIPs")
	s.LoadBalancerIPs = rapid.SliceOfN(asked, 0, 2).Draw(t, "given by a load balancer")
	s.LoadBalancer = rapid.Bool().Draw(t, "of type LoadBalancer")
	s.Pods = rapid.SampledFrom([]labels.Selector{labels.Nothing(), labels.Everything()}).Draw(t, "selector")
	for j := range s.Ports {
		s.Ports[j].NodePort = uint16(30100 + 10*j + i)
		for _, ip := range victimPod(rapid.IntRange(0, 9).Draw(t, "stolen")).IPs {
			s.Ports[j].Endpoints = append(s.Ports[j].Endpoints, world.Endpoint{
				AddrPort: netip.AddrPortFrom(ip, 8080), Node: "n1", Ready: true, Serving: true})
		}
	}
	return s
}

// tenantEgressService has what the controller gives: a host, and an address that is nobody else's.
func tenantEgressService(t *rapid.T, i int) *world.EgressService {
	e := compiletest.EgressService(i)
	e.Namespace = tenant
	e.Created = madeAt.Add(time.Duration(rapid.SampledFrom([]int{-1, 1}).Draw(t, "age")) * time.Second)
	e.DropWhenUnassigned = rapid.Bool().Draw(t, "drop")
	switch rapid.IntRange(0, 2).Draw(t, "host") {
	case 0:
		e.SourceIPBy, e.Host = world.SourceNetwork, world.HostAll
	case 1:
		e.Host = fmt.Sprint("n", rapid.IntRange(1, 3).Draw(t, "node"))
		e.Items = []world.Assignment{{Node: e.Host, IP: compiletest.EgressAddr(30 + i)[0]}}
		e.InForce = [2]bool{rapid.Bool().Draw(t, "in force")}
	}
	return e
}

// tenantPod has an address of its own, for that is its node's to give, and any labels.
func tenantPod(t *rapid.T, i int) *world.Pod {
	p := compiletest.Pod(i+victimPods, fmt.Sprint("n", rapid.IntRange(1, 3).Draw(t, "pod's node")))
	p.Namespace = tenant
	p.Labels = map[string]string{"app": rapid.SampledFrom([]string{"web", "db"}).Draw(t, "app"), "env": "prod"}
	p.HostNetwork = rapid.Bool().Draw(t, "host network")
	return p
}
