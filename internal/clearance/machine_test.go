package clearance_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/clearance"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

var errSilent = errors.New("does not answer")

// story is n1's machine: pod p0 is n1's, and e0, e1 and e2 are on n2, e0 and e1 with destinations of their own.
type story struct {
	*testing.T
	w       *world.World
	machine clearance.Machine
	now     time.Time
	asked   []clearance.Question
	wake    time.Time
	quiet   bool // no event of a pod has come since the agent began
}

func tell(t *testing.T, port uint16) *story {
	s := &story{T: t, w: compiletest.Small("n1", world.SharedGateway), now: time.Unix(1000, 0)}
	s.w.SetNamespace(&world.Namespace{Name: "ns0"})
	s.says("n2", port)
	for i := range 3 {
		e := compiletest.EgressIP(i, []string{"a in (0, 3)", "a in (1, 3)", "a=2"}[i], compiletest.EgressAddr(i)[0])
		if i < 2 {
			e.Traffic = compiletest.TrafficSelector([]string{"a", "b"}[i])
		}
		placed(e, "n2")(s.w)
		s.w.SetTraffic(compiletest.Traffic(i, []string{"a", "b", "c"}[i], fmt.Sprintf("172.2%d.0.0/16", i)))
	}
	s.machine.Begin(s.w, clearance.Former{})
	return s
}

func (s *story) says(node string, port uint16) {
	s.w.SetHolding(&world.Holding{Node: node, BootID: "boot-" + node, Port: port})
}

// group has p0 be in a group, or be gone.
func (s *story) group(group string) {
	p := compiletest.Pod(0, "n1")
	if p.Labels = map[string]string{"a": group}; group == "" {
		s.w.DelPod(p.Key())
	} else {
		s.w.SetPod(p)
	}
	s.step()
}

// traffic gives EgressIPTraffic t<i> networks.
func (s *story) traffic(i int, networks ...string) {
	t := compiletest.Traffic(i, []string{"a", "b", "c"}[i], networks...)
	s.w.SetTraffic(t)
	s.step()
}

func (s *story) step(answers ...clearance.Answer) {
	r := s.machine.Step(s.w, clearance.Facts{Answers: answers, PastLists: !s.quiet},
		s.now)
	s.wake = r.Wake
	s.asked = append(s.asked, r.Ask...)
}

// answer answers the one question under way.
func (s *story) answer(err error) {
	s.Helper()
	if len(s.asked) != 1 {
		s.Fatalf("asked %v, want one question", s.asked)
	}
	q := s.asked[0]
	s.asked = nil
	s.step(clearance.Answer{Question: q, Err: err})
}

func (s *story) pass(d time.Duration) {
	end := s.now.Add(d)
	for !s.wake.IsZero() && !s.wake.After(end) {
		s.now = s.wake
		s.step()
	}
	s.now = end
}

// leads says for which EgressIPs n1 may lead p0's packets to n2.
func (s *story) leads(want string) {
	s.Helper()
	p, have := compiletest.Pod(0, "n1"), ""
	for i := range 3 {
		object := ref.OfKey(fmt.Sprint("e", i))
		if s.w.Cleared("n2") && !s.w.MayTranslate("n2", world.PodAddr{IP: p.IPs[0]}, object) {
			have += object.Name
		}
	}
	if have != want {
		s.Errorf("leads for %q, want %q", have, want)
	}
}

// TestAsks: a node that answers questions is asked as soon as a pod may need it, and no more once it has answered.
func TestAsks(t *testing.T) {
	s := tell(t, 1)
	if s.step(); len(s.asked) > 0 {
		t.Errorf("asks %v though no pod needs it", s.asked)
	}
	s.group("0")
	s.leads("")
	s.answer(nil)
	s.leads("e0e1e2")
	if s.pass(time.Hour); len(s.asked) > 0 {
		t.Errorf("asks %v again", s.asked)
	}
}

// TestRelabelled: what an EgressIP begins to claim of a pod that has got other labels waits. What had a claim goes on.
// What came about after a question was put is not answered by it.
func TestRelabelled(t *testing.T) {
	s := tell(t, 1)
	s.group("0")
	s.answer(nil)
	s.group("2")
	s.leads("e0")
	s.group("1")
	s.leads("")
	s.answer(nil)
	s.leads("e2")
	s.answer(nil)
	s.leads("e0e1e2")
	s.group("3") // e1 goes on, e0 begins
	s.leads("e1")
	s.answer(nil)
	s.leads("e0e1e2")
}

// TestNetworksMove: a network that one EgressIP gives up and another one gets waits; one that nobody had does not.
func TestNetworksMove(t *testing.T) {
	s := tell(t, 1)
	s.group("3")
	s.answer(nil)
	s.traffic(1, "172.21.0.0/16", "172.30.0.0/16")
	s.leads("e0e1e2")
	s.traffic(0)
	s.leads("e0e1")
	s.traffic(1, "172.21.0.0/16", "172.20.0.0/16")
	s.leads("e0")
	s.traffic(0, "172.40.0.0/16") // e0 had 172.20.0.0/16, and then 172.40.0.0/16: nobody has followed either
	s.traffic(0)
	s.leads("e0")
	s.answer(nil)
	s.answer(nil)
	s.leads("e0e1e2")
}

// TestNetworksShrink: what an EgressIP gives up of its networks waits where another one gets it; its rest goes on.
func TestNetworksShrink(t *testing.T) {
	s := tell(t, 1)
	s.group("3")
	s.answer(nil)
	s.traffic(1, "172.21.0.0/16", "172.30.0.0/16")
	s.traffic(1, "172.21.0.0/16")
	s.traffic(0, "172.20.0.0/16", "172.30.0.0/16")
	s.leads("e1")
	s.answer(nil)
	s.leads("e0e1e2")
}

// TestNobodyWaits: where no pod waits for an answer, a node is asked at once, and again after a fifth of a second.
func TestNobodyWaits(t *testing.T) {
	s := tell(t, 1)
	s.group("0")
	s.answer(nil)
	s.group("")
	if s.pass(199 * time.Millisecond); len(s.asked) > 0 {
		t.Errorf("asks %v at once", s.asked)
	}
	s.group("2")
	s.answer(nil)
	s.leads("e0e1e2")
	s.group("")
	s.pass(time.Second)
	s.answer(nil)
	s.group("0")
	s.pass(time.Second)
	s.group("") // nobody has been asked for a second
	s.answer(nil)
}

// TestSilent: a node that does not answer is asked again, ever more slowly, and is late after a second. One that is
// not alive is not asked. One that was late says once more that it has followed, a second later.
func TestSilent(t *testing.T) {
	s := tell(t, 1)
	begin := s.now
	s.group("0")
	var pauses []time.Duration
	for range 8 {
		last := s.now
		s.answer(errSilent)
		s.pass(s.wake.Sub(s.now))
		for len(s.asked) == 0 {
			s.pass(s.wake.Sub(s.now))
		}
		pauses = append(pauses, s.now.Sub(last).Round(time.Millisecond))
		if late := s.now.Sub(begin) >= time.Second; s.w.LateToFollow("n2") != late {
			t.Errorf("after %v: late %t", s.now.Sub(begin), !late)
		}
	}
	const ms = time.Millisecond
	if want := []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, time.Second}; !slices.Equal(
		pauses[:6], want) {
		t.Errorf("pauses are %v, want %v", pauses[:6], want)
	}
	s.w.SetTunnel("n2", world.TunnelDown)
	s.answer(errSilent)
	if s.pass(time.Minute); len(s.asked) > 0 {
		t.Error("asks a node that is not alive")
	}
	s.w.SetTunnel("n2", world.TunnelUp)
	s.step()
	s.answer(nil)
	s.leads("")
	s.pass(time.Second)
	s.answer(nil)
	if s.leads("e0e1e2"); s.w.LateToFollow("n2") {
		t.Error("it has answered, and is late")
	}
}

// TestUnreachable: a node that packets wait for and that cannot be asked, because it is not alive, is late as well.
// Once no packet waits, or the node has answered, it is not.
func TestUnreachable(t *testing.T) {
	s := tell(t, 1)
	s.group("0")
	s.answer(nil)
	s.w.SetTunnel("n2", world.TunnelDown)
	s.step()
	late := func(when string, want bool) {
		t.Helper()
		if have := s.w.LateToFollow("n2"); have != want || len(s.asked) > 0 {
			t.Errorf("%s: late %t, asked %v", when, have, s.asked)
		}
	}
	s.pass(time.Hour)
	late("nothing waits", false)
	s.group("2")
	s.pass(lateAfter - time.Millisecond)
	late("soon after", false)
	s.pass(time.Millisecond)
	late("a second later", true)
	s.group("")
	late("no pod is there", false)
	s.group("0")
	s.pass(lateAfter)
	late("a pod is there again", true)
	s.w.SetTunnel("n2", world.TunnelUp)
	s.step()
	s.answer(nil)
	late("it has answered", false)
	s.leads("e0e1e2")
}

// lateAfter is the machine's.
const lateAfter = time.Second

// TestOlder: a node of a version that does not answer is led to unasked. When it comes to answer, what is led there
// goes on; what begins waits for its answer.
func TestOlder(t *testing.T) {
	s := tell(t, 0)
	s.group("0")
	s.group("2")
	if s.leads("e0e1e2"); len(s.asked) > 0 {
		t.Errorf("asks %v", s.asked)
	}
	s.says("n2", 1)
	s.step()
	s.leads("e0e1e2")
	s.group("0")
	s.leads("") // n2 may not know what objects select
	s.answer(nil)
	if s.leads("e2"); len(s.asked) != 1 { // it was asked before the pod came under e0
		t.Errorf("asked %v", s.asked)
	}
	s.answer(nil)
	s.leads("e0e1e2")
}

// TestNothingSaid: a node whose report does not reach this one, for it holds nothing, is not taken for one of a
// version that answers no questions.
func TestNothingSaid(t *testing.T) {
	s := tell(t, 1)
	s.w.DelHolding("n2")
	s.group("0")
	if s.leads(""); len(s.asked) > 0 {
		t.Errorf("asks %v, and knows no port", s.asked)
	}
	s.says("n2", 1)
	s.step()
	s.leads("")
	s.answer(nil)
	s.leads("e0e1e2")
	s.w.DelHolding("n2")
	s.group("2")
	if s.pass(time.Minute); len(s.asked) > 0 {
		t.Errorf("asks %v, and knows no port any more", s.asked)
	}
}

// TestYields: a node to which this one yields is asked, too, though no status names it.
func TestYields(t *testing.T) {
	s := tell(t, 1)
	ip := compiletest.EgressAddr(0)[0]
	for i := range 3 {
		s.w.DelEgressIP(fmt.Sprint("e", i))
	}
	placed(compiletest.EgressIP(0, "a=0", ip), "n1")(s.w)
	if s.group("0"); len(s.asked) > 0 {
		t.Errorf("asked %v", s.asked)
	}
	s.w.SetYielded(world.EgressAddress{Object: "e0", IP: ip}, &world.Yield{To: "n2"})
	s.step()
	s.answer(nil)
	if !s.w.Cleared("n2") {
		t.Error("n2 is not led to")
	}
}

// TestMadeAnew: an object of a former one's name is another one, whose packets wait.
func TestMadeAnew(t *testing.T) {
	s := tell(t, 1)
	s.group("2")
	s.answer(nil)
	e := *s.w.EgressIP("e2")
	e.UID = "another"
	s.w.SetEgressIP(&e)
	s.step()
	s.leads("")
	s.answer(nil)
	s.leads("e0e1e2")
}

// TestComesAfterTheStart: a node is led packets of an address that comes after the start once it has followed the
// first event of a pod since. The address may have been that of a pod which was deleted before.
func TestComesAfterTheStart(t *testing.T) {
	s := tell(t, 1)
	s.quiet = true
	q := compiletest.Pod(1, "n1")
	q.Namespace, q.Labels = "ns0", map[string]string{"a": "0"}
	s.w.SetPod(q)
	s.step()
	s.answer(nil)
	s.group("0")
	if s.leads(""); len(s.asked) > 0 {
		t.Errorf("asked %v, and no pod has been seen since the start", s.asked)
	}
	s.quiet = false
	s.step()
	s.leads("")
	s.answer(nil)
	s.leads("e0e1e2")
	s.group("")
	s.pass(time.Second)
	s.answer(nil)
	s.group("2")
	s.leads("e0e1e2")
}

// TestOtherSubnets: addresses of another subnet of this node's may have been other nodes' pods'.
func TestOtherSubnets(t *testing.T) {
	s := tell(t, 1)
	s.group("0")
	s.answer(nil)
	for i, change := range []func(*world.Node){
		func(n *world.Node) { n.Subnets = []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")} },
		func(n *world.Node) { n.UID = "another" },
	} {
		s.group("")
		s.pass(time.Second)
		s.answer(nil)
		n := *s.w.Node("n1")
		change(&n)
		s.w.SetNode(&n)
		if s.step(); len(s.asked) > 0 {
			t.Errorf("%d: asked %v, and no pod has come", i, s.asked)
		}
		s.group("0")
		s.leads("")
		s.answer(nil)
		s.leads("e0e1e2")
	}
}

// TestReportsLater: a node to which a former process led packets is not trusted for others because its report comes
// later.
func TestReportsLater(t *testing.T) {
	s := tell(t, 1)
	s.w.DelHolding("n2")
	p, e0 := compiletest.Pod(0, "n1"), ref.OfKey("e0")
	s.machine = clearance.Machine{}
	s.machine.Begin(s.w, clearance.Former{Nodes: [2]map[ref.Object][]string{{e0: {"n2"}}},
		Pods: map[world.PodAddr][]ref.Object{{IP: p.IPs[0]}: {e0}}})
	s.group("2")
	s.leads("e0")
	s.says("n2", 1)
	s.step()
	s.leads("e0")
	s.answer(nil)
	s.leads("e0e1e2")
}

// TestLedInOtherFamily: a node to which a former process led an object's packets of one family may translate those of
// another family for another object.
func TestLedInOtherFamily(t *testing.T) {
	for f, want := range []string{"e0", ""} {
		s := tell(t, 1)
		p, e0 := compiletest.Pod(0, "n1"), ref.OfKey("e0")
		former := clearance.Former{Pods: map[world.PodAddr][]ref.Object{{IP: p.IPs[0]}: {e0}, {IP: p.IPs[1]}: {e0}}}
		former.Nodes[f] = map[ref.Object][]string{e0: {"n2"}}
		s.machine = clearance.Machine{}
		s.machine.Begin(s.w, former)
		s.group("0")
		s.leads(want)
	}
}

// TestAnswerToAnEarlierQuestion: what a node of the same name has answered says nothing of a later one.
func TestAnswerToAnEarlierQuestion(t *testing.T) {
	s := tell(t, 1)
	for _, uid := range []string{"first", "second"} {
		n := *s.w.Node("n2")
		n.UID = uid
		s.w.SetNode(&n)
		s.group("0")
	}
	if len(s.asked) != 2 {
		t.Fatalf("asked %v", s.asked)
	}
	s.step(clearance.Answer{Question: s.asked[0]})
	s.leads("")
	s.step(clearance.Answer{Question: s.asked[1]})
	s.leads("e0e1e2")
}

// TestLedByTwo: where two objects led a pod to one node before this process, each is trusted with the destinations
// that it had then. One with others waits for the node.
func TestLedByTwo(t *testing.T) {
	for what, x := range map[string]struct {
		networks []string // of e1 by now; e0 has 172.20.0.0/16 or, if e1 has that, others
		want     string
	}{
		"as before": {[]string{"172.21.0.0/16"}, "e0e1"},
		"moved":     {[]string{"172.21.0.0/16", "172.20.0.0/16"}, ""},
		"new":       {[]string{"172.21.0.0/16", "172.30.0.0/16"}, "e0"},
	} {
		t.Run(what, func(t *testing.T) {
			s := tell(t, 1)
			e0, e1, ip := ref.OfKey("e0"), ref.OfKey("e1"), compiletest.Pod(0, "n1").IPs[0]
			if slices.Contains(x.networks, "172.20.0.0/16") {
				s.w.SetTraffic(compiletest.Traffic(0, "a", "172.40.0.0/16"))
			}
			s.w.SetTraffic(compiletest.Traffic(1, "b", x.networks...))
			s.machine = clearance.Machine{}
			s.machine.Begin(s.w, clearance.Former{Nodes: [2]map[ref.Object][]string{{e0: {"n2"}, e1: {"n2"}}},
				Pods: map[world.PodAddr][]ref.Object{{IP: ip}: {e0, e1}}, To: map[ref.Object]destinations.Set{
					e0: destinations.Of(netip.MustParsePrefix("172.20.0.0/16")),
					e1: destinations.Of(netip.MustParsePrefix("172.21.0.0/16"))}})
			s.group("3")
			s.leads(x.want)
			s.answer(nil)
			s.leads("e0e1e2")
		})
	}
}

// TestLedWithinItsDestinations: the object that led a pod to a node before this process may have got destinations
// since then that were another object's there, which selects the pod no more.
func TestLedWithinItsDestinations(t *testing.T) {
	for network, want := range map[string]string{"172.20.0.0/16": "e0", "172.21.0.0/16": ""} {
		s := tell(t, 1)
		e0, ip := ref.OfKey("e0"), compiletest.Pod(0, "n1").IPs[0]
		s.w.SetTraffic(compiletest.Traffic(0, "a", network))
		s.machine = clearance.Machine{}
		s.machine.Begin(s.w, clearance.Former{Nodes: [2]map[ref.Object][]string{{e0: {"n2"}}},
			Pods: map[world.PodAddr][]ref.Object{{IP: ip}: {e0}},
			To:   map[ref.Object]destinations.Set{e0: destinations.Of(netip.MustParsePrefix("172.20.0.0/16"))}})
		s.group("3")
		s.leads(want)
		s.answer(nil)
		s.leads("e0e1e2")
	}
}

// TestNodeMadeAnew: a machine of the same name has said nothing yet.
func TestNodeMadeAnew(t *testing.T) {
	s := tell(t, 1)
	s.group("0")
	s.answer(nil)
	n := *s.w.Node("n2")
	n.UID = "another"
	s.w.SetNode(&n)
	s.step()
	s.leads("e0e1e2") // it had no UID yet
	n.UID = "yet another"
	s.w.SetNode(&n)
	s.step()
	s.leads("")
	s.answer(nil)
	s.leads("e0e1e2")
}
