package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// settling is how long a cluster has before the story begins: all times of a story count from there.
const settling = 5 * time.Second

// Result is what a run has found.
type Result struct {
	Wrong string // "" if nothing
	// Excused is how many packets had a source that was right before an agent could not follow, or that is right for
	// one which cannot follow, by a change that the pod's node was about to hear of.
	Excused int
	// Walks, Events and Writes are how many packets were walked, how much happened, and the API server's last version.
	Walks, Events, Writes int
}

// Run tells a story with a seed, and lets time pass for a while after its last line and the end of all faults. Then
// every pod is to be served. See docs/contributing.md for the lines.
func Run(seed uint64, story string) Result {
	s := newSim(seed, story)
	last := s.tell(story)
	s.run(begin.Add(settling + last + rest))
	s.verdict.atRest()
	readers.Put(s.verdict.reader)
	return Result{s.verdict.wrong, s.verdict.excused, s.verdict.walks, s.count, s.api.version}
}

// tell has the lines of a story happen in their time, and returns when the last one is over.
func (s *Sim) tell(story string) (last time.Duration) {
	s.run(begin.Add(settling))
	for line := range strings.SplitSeq(story, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' || line == localMark ||
			strings.HasPrefix(line, limitMark) {
			continue
		}
		words := strings.Fields(line)
		at := span(words[0])
		last = max(last, at+lasts(words[1:]))
		s.at(begin.Add(settling+at), func() { s.happens(words[1:]) })
	}
	return last
}

// rest is how long after the end of all faults every pod is to be served: an agent may wait for the next bookmark of
// another one's watch.
const rest = bookmarks + 30*time.Second

// lasts is how long what a line begins does.
func lasts(words []string) time.Duration {
	switch words[0] {
	case "kill", "hang", "stall", "cut", "isolate", "reboot", "rename", "reregister", "deaf", "controller-kill",
		"controller-hang":
		return span(words[2])
	case "late", "controller-late":
		return min(span(words[3]), kube.StillAtMost)
	case "fail", "part":
		return span(words[3])
	}
	return 0
}

// localMark is the line of a story in local gateway mode.
const localMark = "local gateway mode"

// limitMark begins the line of a story in which the promise ends (docs/architecture.md).
const limitMark = "limit: "

// showsLimit says whether a story has such a line.
func showsLimit(story string) bool { return strings.Contains(story, "\n"+limitMark) }

func newSim(seed uint64, story string) *Sim {
	mode := world.SharedGateway
	if slices.Contains(strings.Split(story, "\n"), localMark) {
		mode = world.LocalGateway
	}
	s := &Sim{seed: seed, config: compiletest.Config(mode), now: begin, machines: map[string]*machine{},
		pods: map[string]*pod{}, networks: map[string]int{}, reuse: 5 * time.Second,
		pace:  Pace{Watch: time.Second, Write: 300 * time.Millisecond, OVN: 500 * time.Millisecond},
		drawn: map[string]int{}}
	s.api, s.verdict = newAPI(s), newVerdict(s)
	s.createNamespace(namespace)
	for i := 1; i <= 3; i++ {
		s.addMachine(i)
	}
	s.every(bookmarks, s.api.sendBookmarks)
	s.every(tick, s.verdict.judgeAnswers)
	s.every(500*time.Millisecond, s.verdict.judgeReadiness)
	s.addController("n1")
	s.addController("n2")
	return s
}

// told is the time of the story.
func (s *Sim) told() time.Duration { return s.elapsed() - settling }

// happens makes one line of a story happen.
func (s *Sim) happens(words []string) {
	do, is := lines[words[0]]
	if !is {
		panic(fmt.Sprintf("no such line: %q", words))
	}
	do(s, words[1:])
}

// lines are what can happen, by the first word.
var lines = map[string]func(*Sim, []string){
	"assignable":     func(s *Sim, w []string) { s.machine(w[0]).assignable(w[1] == "yes") },
	"egressip":       func(s *Sim, w []string) { s.setEgressIP(w[0], w[1], addresses(addressesOf(w), number(w[2]))) },
	"annotate":       func(s *Sim, w []string) { s.annotate(w[0], w[1], w[2], w[3]) },
	"forget":         func(s *Sim, w []string) { s.api.delete("egressips", w[0]) },
	"endpoint":       func(s *Sim, w []string) { s.setEndpoints(w[0], w[1:]) },
	"traffic":        func(s *Sim, w []string) { s.setTraffic(w[0], w[1:]) },
	"forget-traffic": func(s *Sim, w []string) { s.api.delete("egressiptraffics", w[0]) },
	"narrow":         func(s *Sim, w []string) { s.narrow(w[0], w[1:]) },
	"service":        func(s *Sim, w []string) { s.setService(w[0], w[1], number(w[2]), addressesOf(w)) },
	"forget-service": func(s *Sim, w []string) { s.api.delete("services", namespace+"/"+w[0]) },
	"egressservice":  func(s *Sim, w []string) { s.setEgressService(w[0]) },
	"choose":         func(s *Sim, w []string) { s.choose(w[0], w[1:]) },
	"no-ingress":     func(s *Sim, w []string) { s.removeIngress(w[0]) },
	"type":           func(s *Sim, w []string) { s.setType(w[0], w[1]) },
	"forget-egressservice": func(s *Sim, w []string) {
		s.api.delete("egressservices", namespace+"/"+w[0])
	},
	"pod":             func(s *Sim, w []string) { s.startPod(w[0], w[1], w[2]) },
	"pending":         func(s *Sim, w []string) { s.createPod(w[0], w[1]) },
	"bind":            func(s *Sim, w []string) { s.bindPod(w[0], w[1]) },
	"reuse":           func(s *Sim, w []string) { s.reuse = span(w[0]) },
	"relabel":         func(s *Sim, w []string) { s.relabel(w[0], w[1]) },
	"delete":          func(s *Sim, w []string) { s.endPod(w[0], false) },
	"force":           func(s *Sim, w []string) { s.endPod(w[0], true) },
	"namespace":       func(s *Sim, w []string) { s.relabelNamespace(append(w, namespace)[1], w[0]) },
	"network":         func(s *Sim, w []string) { s.setNetwork(w[0], number(w[1])) },
	"kill":            func(s *Sim, w []string) { s.machine(w[0]).kill(span(w[1])) },
	"hang":            func(s *Sim, w []string) { s.machine(w[0]).hang(span(w[1])) },
	"stall":           func(s *Sim, w []string) { s.machine(w[0]).stall(span(w[1])) },
	"fail":            func(s *Sim, w []string) { s.machine(w[0]).fail(w[1], span(w[2])) },
	"cut":             func(s *Sim, w []string) { s.machine(w[0]).cutOff(span(w[1])) },
	"isolate":         func(s *Sim, w []string) { s.machine(w[0]).isolate(span(w[1])) },
	"part":            func(s *Sim, w []string) { s.machine(w[0]).part(s.machine(w[1]), span(w[2])) },
	"reboot":          func(s *Sim, w []string) { s.machine(w[0]).reboot(span(w[1])) },
	"controller-kill": func(s *Sim, w []string) { s.controllerAt(w[0]).kill(span(w[1])) },
	"controller-hang": func(s *Sim, w []string) { hang(s, s.controllerAt(w[0]).process, span(w[1])) },
	"rename":          func(s *Sim, w []string) { s.machine(w[0]).rename(span(w[1])) },
	"reregister":      func(s *Sim, w []string) { s.machine(w[0]).reregister(span(w[1])) },
	"clock":           func(s *Sim, w []string) { s.machine(w[0]).clockSet += span(w[1]) },
	"backup":          func(s *Sim, _ []string) { s.api.backUp() },
	"restore":         func(s *Sim, _ []string) { s.api.restore() },
	"writes":          func(s *Sim, w []string) { s.api.othersWrite(number(w[0])) },
	"remember":        func(s *Sim, w []string) { s.machine(w[0]).remember() },
	"overwrite":       func(s *Sim, w []string) { s.machine(w[0]).overwrite() },
	"show":            func(s *Sim, w []string) { s.show() },
	"gone":            func(s *Sim, w []string) { s.gone(w[0]) },
	"machine":         func(s *Sim, w []string) { s.addMachine(number(w[0])) },
	"deaf":            func(s *Sim, w []string) { s.machine(w[0]).deaf = s.now.Add(span(w[1])) },
	"late":            func(s *Sim, w []string) { s.late(w[0], w[1], span(w[2])) },
	"controller-late": func(s *Sim, w []string) { s.controllerAt(w[0]).client.late(w[1], span(w[2])) },
}

// addressesOf returns the object whose addresses a line gives one: itself, unless the line names another.
func addressesOf(words []string) string { return slices.Concat(words, words[:1])[3] }

// gone takes a machine's power and its Node for ever.
func (s *Sim) gone(name string) { s.machine(name).rename(10 * time.Hour) }

// late has an agent's watch of one kind bring nothing for a while, at most until the agent lists the kind again.
func (s *Sim) late(name, plural string, d time.Duration) {
	m := s.machine(name)
	m.s.verdict.disturb(m.name, s.now, s.now.Add(min(d, kube.StillAtMost)+following), true)
	m.client.late(plural, d)
}

func span(text string) time.Duration {
	d, err := time.ParseDuration(text)
	must(err)
	return d
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	must(err)
	return n
}

// show prints where each pod's packets go.
func (s *Sim) show() {
	s.verdict.due = s.now
	s.verdict.look()
	for _, name := range slices.Sorted(maps.Keys(s.api.objects["egressips"])) {
		fmt.Printf("%v %s %+v\n", s.told(), name, s.api.egressIP(name).Status)
	}
	for _, name := range slices.Sorted(maps.Keys(s.api.objects["egressservices"])) {
		fmt.Printf("%v %s %+v\n", s.told(), name, get[*v1.EgressService](s.api, "egressservices", name).Status)
	}
	for _, x := range s.packets() {
		fmt.Println(s.told(), x.from.name(), x.src, "to", x.dst, trace.Sentences(s.verdict.walk(x)))
	}
}
