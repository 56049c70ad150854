package kube_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// A report that the schema refuses is lost as a whole: the node would count as holding nothing.
func TestReportFitsTheSchema(t *testing.T) {
	h := &world.Holding{Node: "n1", BootID: "boot", Holds: map[string][]netip.Addr{"e": nil},
		Conflicts: map[string][]world.Conflict{"e": nil}}
	for i := range egretv1.MaxHolding + 1 {
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], 10<<24+uint32(i))
		h.Holds["e"] = append(h.Holds["e"], netip.AddrFrom4(a))
	}
	h.Conflicts["e"] = make([]world.Conflict, egretv1.MaxConflicts+1)
	h.Steers = map[string][]world.Assignment{}
	for i := range egretv1.MaxSteers/2 + 1 {
		to := world.Assignment{Node: "n1", IP: netip.AddrFrom4([4]byte{172, 18, 0, 33})}
		h.Steers[fmt.Sprintf("e%05d", i)] = []world.Assignment{to, {Node: "n2", IP: to.IP}}
	}
	problems := []world.Problem{ofNode(strings.Repeat("ä", egretv1.MaxProblemLength+1))}
	for i := range egretv1.MaxProblems {
		problems = append(problems, ofNode(fmt.Sprint(i)))
	}
	s := kube.EgressNode(h, "uid", strings.Repeat("v", 500), problems).Status
	if len(s.Holding) != egretv1.MaxHolding || int(s.HoldingCount) != len(s.Holding) ||
		strings.Count(s.HeldIPs, ",") != len(s.Holding)-1 {
		t.Errorf("%d held, count %d", len(s.Holding), s.HoldingCount)
	}
	if len(s.Conflicts) != egretv1.MaxConflicts || len(s.AgentVersion) != egretv1.MaxAgentVersion ||
		len(s.Problems) != egretv1.MaxProblems {
		t.Errorf("%d conflicts, %d problems, a version of %d characters", len(s.Conflicts), len(s.Problems),
			len(s.AgentVersion))
	}
	if !strings.HasPrefix(s.Problems[0], "the node leads its pods to 8194 holders of egress IPs and can report 8192") ||
		len(s.Steers) != egretv1.MaxSteers {
		t.Errorf("%d steered, first problem: %s", len(s.Steers), s.Problems[0])
	}
	s.Problems = s.Problems[1:]
	if !strings.HasPrefix(s.Problems[0], "the node holds 8193 egress IPs and can report 8192") {
		t.Errorf("first problem: %s", s.Problems[0])
	}
	if have := len([]rune(s.Problems[1])); have != egretv1.MaxProblemLength || !strings.HasSuffix(s.Problems[1],
		"ä...") {
		t.Errorf("a long problem has %d characters", have)
	}
	if want := "and 4 problems more: see the agent's log"; s.Problems[egretv1.MaxProblems-2] != want {
		t.Errorf("last problem %q, want %q", s.Problems[egretv1.MaxProblems-2], want)
	}
}

func emptyReport() *world.Holding {
	return &world.Holding{
		Node: "n1", BootID: "boot", Holds: map[string][]netip.Addr{}, Steers: map[string][]world.Assignment{},
	}
}

func ofNode(text string) world.Problem {
	return world.Problem{Object: ref.Object{Kind: ref.Node, Name: "n1"}, Reason: world.ReasonRefused, Message: text}
}

// TestReportFitsIntoEtcd: a node with thousands of addresses of objects with the longest names reports as much as
// etcd takes, says so, and what it leaves out of steers counts as not told.
func TestReportFitsIntoEtcd(t *testing.T) {
	const entries = 8000
	h := emptyReport()
	long := strings.Repeat("a", 248)
	for i := range entries {
		name := fmt.Sprintf("%s%05d", long, i)
		ip := netip.AddrFrom16([16]byte{0: 0xfd, 1: 1, 14: byte(i >> 8), 15: byte(i)})
		h.Holds[name] = []netip.Addr{ip}
		h.Steers[name] = []world.Assignment{{Node: long, IP: ip}}
	}
	var problems []world.Problem
	for range egretv1.MaxProblems {
		problems = append(problems, ofNode(strings.Repeat("<", egretv1.MaxProblemLength))) // six bytes each as JSON
	}
	o := kube.EgressNode(h, "uid", "v1", problems)
	text, err := json.Marshal(o.Status)
	if err != nil || len(text) > egretv1.MaxStatusBytes {
		t.Errorf("%d bytes, want at most %d: %v", len(text), egretv1.MaxStatusBytes, err)
	}
	held, steers := len(o.Status.Holding), len(o.Status.Steers)
	if held < 1000 || steers < 500 || int(o.Status.HoldingCount) != held {
		t.Errorf("%d held and %d steered are reported: there is room for more", held, steers)
	}
	have := kube.Holding(o)
	told := strings.Contains(o.Status.Problems[1], "the node holds 8000 egress IPs and can report")
	if !have.SteersMore || len(have.Holds) != held || !told {
		t.Errorf("more %t, %d held, problem %s", have.SteersMore, len(have.Holds), o.Status.Problems[1])
	}
}

// TestShortNamesHaveRoom: a node with thousands of addresses of objects with short names reports all of them.
func TestShortNamesHaveRoom(t *testing.T) {
	h := emptyReport()
	for i := range 8000 {
		name, ip := fmt.Sprintf("egress-%04d", i), netip.AddrFrom4([4]byte{172, 18, byte(i >> 8), byte(i)})
		h.Holds[name], h.Steers[name] = []netip.Addr{ip}, []world.Assignment{{Node: "node-1", IP: ip}}
	}
	o := kube.EgressNode(h, "uid", "v1", nil)
	held, steers := len(o.Status.Holding), len(o.Status.Steers)
	if held != 8000 || steers != 8000 || len(o.Status.Problems) > 0 {
		t.Errorf("%d held, %d steered, problems %q", held, steers, o.Status.Problems)
	}
	if have := kube.Holding(o); len(have.Holds) != 8000 || have.SteersMore {
		t.Errorf("%d read, more %t", len(have.Holds), have.SteersMore)
	}
}

// TestDatesYield: since when all is held has no room in a report that is as full as that; what is held has.
func TestDatesYield(t *testing.T) {
	for _, x := range []struct{ addresses, dated int }{{2000, 2000}, {5000, 5000}, {8000, 0}} {
		h := emptyReport()
		for i := range x.addresses {
			name, ip := fmt.Sprintf("egress-%04d", i), netip.AddrFrom4([4]byte{172, 18, byte(i >> 8), byte(i)})
			to := world.Assignment{Node: "node-1", IP: ip}
			h.Holds[name], h.Steers[name] = []netip.Addr{ip}, []world.Assignment{to}
			h.SayHeld(name, ip, 1_767_225_600_000_000)
			h.SaySteers(name, to, 1_767_225_600_000_000)
		}
		o := kube.EgressNode(h, "uid", "v1", nil)
		have := kube.Holding(o)
		if len(have.Holds) != x.addresses || len(have.Steers) != x.addresses || len(have.HeldSince) != x.dated ||
			len(have.SteersSince) != x.dated {
			t.Errorf("%d addresses: %d held, %d steered; %d and %d dated", x.addresses, len(have.Holds),
				len(have.Steers), len(have.HeldSince), len(have.SteersSince))
		}
	}
}

// Of what a full report has no room for nobody says that it is led nowhere.
func TestFullReportOfSteers(t *testing.T) {
	o := &egretv1.EgressNode{Status: egretv1.EgressNodeStatus{BootID: "boot"}}
	for i := range egretv1.MaxSteers {
		o.Status.Steers = append(o.Status.Steers, egretv1.Steered{EgressIP: fmt.Sprintf("e%05d", i/2),
			IP: "172.18.0.33", Node: fmt.Sprint("n", i%2)})
	}
	last := o.Status.Steers[egretv1.MaxSteers-1].EgressIP
	if h := kube.Holding(o); !h.SteersMore || len(h.Steers["e00000"]) != 2 || h.Steers[last] != nil {
		t.Errorf("full: more %t, first %v, last %v", h.SteersMore, h.Steers["e00000"], h.Steers[last])
	}
	o.Status.Steers = o.Status.Steers[1:]
	if h := kube.Holding(o); h.SteersMore || len(h.Steers[last]) != 2 {
		t.Errorf("with room left: more %t, last %v", h.SteersMore, h.Steers[last])
	}
}

// TestOwnProblemsAreTold: of more problems than have room, those of the node and of its links are told.
func TestOwnProblemsAreTold(t *testing.T) {
	var problems []world.Problem
	for i := range 2 * egretv1.MaxProblems {
		e := ref.Object{Kind: ref.EgressIP, Name: fmt.Sprintf("e%03d", i)}
		problems = append(problems, world.Problem{Object: e, Reason: world.ReasonRefused, Message: "refused"})
	}
	problems = append(problems, kube.Fault(netip.MustParsePrefix("172.19.0.0/16"), "link eth1 is down"), ofNode("slow"))
	told := kube.EgressNode(&world.Holding{Node: "n1", BootID: "boot"}, "uid", "v", problems).Status.ObjectProblems
	for i, want := range []string{ref.Network, ref.Node, ref.EgressIP} {
		if told[i].Kind != want {
			t.Errorf("problem %d is %s/%s, want one of a %s", i, told[i].Kind, told[i].Name, want)
		}
	}
}

// TestNetworkNamesFitTheSchema: a network of pods may have any name, and the API server takes a report about it.
func TestNetworkNamesFitTheSchema(t *testing.T) {
	fits := regexp.MustCompile(`^[a-z0-9:]([-a-z0-9.:/]*[a-z0-9])?$`) // as api/egret/v1 has it
	for _, name := range []string{"shop_blue", "cluster_udn_blue", "Ü/x", "_", "a ", strings.Repeat("a_", 300)} {
		problem := world.Problem{Object: ref.Object{Kind: ref.LogicalNetwork, Name: name}, Reason: "ProbePorts"}
		s := kube.EgressNode(emptyReport(), "uid", "v", []world.Problem{problem}).Status
		if have := s.ObjectProblems[0].Name; !fits.MatchString(have) || len(have) > 253 {
			t.Errorf("network %q is reported as %q", name, have)
		}
	}
}
