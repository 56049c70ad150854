package featuretest

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// runCommand is one command's output; an error is output too, so that scripts can expect it.
func (c *cluster) runCommand(words []string) string {
	if len(words) == 0 {
		return ""
	}
	out, err := c.dispatchCommand(words[0], words[1:])
	if err != nil {
		return out + "error: " + err.Error() + "\n"
	}
	return out
}

func (c *cluster) dispatchCommand(name string, args []string) (string, error) {
	if name != "cluster" && c.config == nil {
		return "", fmt.Errorf("begin with: cluster shared|local ipv4|ipv6|dual")
	}
	queries := map[string]func([]string) (string, error){"plan": c.showPlan, "diff": c.diffPlan, "packet": c.showPacket,
		"walk": c.showWalk, "explain": c.explainPacket}
	changes := map[string]func([]string) (string, error){
		"cluster": c.beginCluster, "apply": c.applyFile, "delete": c.deleteObject, "label": c.labelObject,
		"assign": c.runController, "report": c.reportNodes,
		"overdue": c.makeOverdue, "cleared": c.setCleared, "former": c.setFormer,
	}
	least := map[string]int{"cluster": 2, "apply": 1, "delete": 2, "label": 3, "plan": 1, "diff": 1, "packet": 2,
		"walk": 2, "explain": 2, "overdue": 1, "cleared": 3, "former": 4}
	if len(args) < least[name] {
		return "", fmt.Errorf("%s wants %d arguments", name, least[name])
	}
	if f := queries[name]; f != nil {
		return f(args)
	}
	f := changes[name]
	if f == nil {
		return "", fmt.Errorf("no command %s", name)
	}
	if err := c.rememberPlans(); err != nil {
		return "", err
	}
	return f(args)
}

func (c *cluster) beginCluster(args []string) (string, error) {
	config, err := newConfig(args[0], args[1])
	c.config, c.objects, c.views = config, map[id]object{}, map[string]*view{}
	return "", err
}

func (c *cluster) applyFile(args []string) (string, error) {
	text, err := c.readFile(args[0])
	if err != nil {
		return "", err
	}
	objects, err := decodeObjects(text)
	for _, o := range objects {
		if newSource().StoreOf(o) == nil {
			return "", fmt.Errorf("nothing follows a %s", idOf(o).kind)
		}
		c.keepStatus(o)
		c.putObject(o)
	}
	return "", err
}

// keepStatus treats status as a subresource: a write of the object keeps the former status, unless the file has one.
func (c *cluster) keepStatus(o object) {
	e, is := o.(*v1.EgressIP)
	old, had := c.objects[idOf(o)].(*v1.EgressIP)
	if is && had && len(e.Status.Items) == 0 {
		e.Status = old.Status
	}
}

func (c *cluster) deleteObject(args []string) (string, error) {
	return "", c.removeObject(id{args[0], args[1]})
}

func (c *cluster) labelObject(args []string) (string, error) {
	old := c.objects[id{args[0], args[1]}]
	if old == nil {
		return "", fmt.Errorf("no %s %s", args[0], args[1])
	}
	o := old.DeepCopyObject().(object)
	labels := maps.Clone(o.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	for _, l := range args[2:] {
		if key, remove := strings.CutSuffix(l, "-"); remove {
			delete(labels, key)
		} else {
			key, value, _ := strings.Cut(l, "=")
			labels[key] = value
		}
	}
	o.SetLabels(labels)
	c.putObject(o)
	return "", nil
}

// runController is one decision of the controller, written, some time after the last: "assign 4s".
func (c *cluster) runController(args []string) (string, error) {
	w := c.controllerWorld()
	for _, after := range args {
		d, err := time.ParseDuration(after)
		if err != nil {
			return "", err
		}
		c.now = c.now.Add(d)
	}
	conditions := map[string][]world.Condition{}
	for _, d := range egressip.DescribeKind().NewDeciders(handover.NewPods()) {
		desired, _ := d.Decide(decide.View{World: w, Now: c.now})
		for _, x := range desired {
			e := *w.EgressIP(x.Key)
			if placement, is := x.Decision.Status.(world.Placement); is {
				e.Placement = placement
			}
			conditions[x.Key] = append(conditions[x.Key], x.Decision.Conditions...)
			w.SetEgressIP(&e)
		}
	}
	var said []string
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		e := *w.EgressIP(name)
		goes := func(c world.Condition) bool { return c.Status == "" }
		e.Conditions = slices.DeleteFunc(conditions[name], goes)
		o := c.objects[id{"EgressIP", name}].DeepCopyObject().(*v1.EgressIP)
		o.Status = kube.EgressIPStatus(&e)
		c.putObject(o)
		said = append(said, worthSaying(&e)...)
	}
	return joinLines(said), nil
}

// worthSaying leaves out that nothing is substituted and nobody stands by, which is so of nearly all.
func worthSaying(e *world.EgressIP) []string {
	var said []string
	for _, l := range e.Leaving {
		said = append(said, fmt.Sprintf("%s leaving: %s from %s", e.Name, l.IP, l.Node))
	}
	for _, k := range e.Conditions {
		if k.Status == "True" || k.Type != egressip.ConditionFallback && k.Type != egressip.ConditionOverlapped {
			said = append(said, fmt.Sprintf("%s %s=%s %s: %s", e.Name, k.Type, k.Status, k.Reason, k.Message))
		}
	}
	return said
}

func (c *cluster) reportNodes(names []string) (string, error) {
	if len(names) == 0 {
		names = c.nodeNames()
	}
	var said []string
	for _, name := range names {
		v := c.views[name]
		if v == nil {
			return "", fmt.Errorf("no node %s", name)
		}
		p, err := v.compilePlan()
		if err != nil {
			return "", err
		}
		o := kube.EgressNode(reportOf(name, v.world.Node(name).BootID, p), "", "", nil)
		c.putObject(o)
		for _, held := range o.Status.Holding {
			said = append(said, name+" holds "+held.IP+" of "+held.EgressIP)
		}
		for _, held := range o.Status.HeldAddresses {
			if held.Namespace != "" {
				said = append(said, name+" holds "+held.IP+" of "+held.Namespace+"/"+held.Name)
			}
		}
	}
	return joinLines(said), nil
}

// makeOverdue has a node wait no longer for those that it leads its pods to before they say that they hold an address.
func (c *cluster) makeOverdue(args []string) (string, error) {
	v := c.views[args[0]]
	if v == nil {
		return "", fmt.Errorf("no node %s", args[0])
	}
	p, err := v.compilePlan()
	if err != nil {
		return "", err
	}
	for address, node := range holder.AheadOf(p) {
		v.world.SetOverdue(address, node)
		v.memo.Update(v.world)
	}
	return "", nil
}

// setCleared has a node know of another one that it has followed, "yes", or "no", or that it is "late", or
// "unanswered": late and not followed.
func (c *cluster) setCleared(args []string) (string, error) {
	v := c.views[args[0]]
	if v == nil {
		return "", fmt.Errorf("no node %s", args[0])
	}
	v.world.BeginClearing()
	v.memo.Update(v.world)
	known := world.Clearance{Cleared: args[2] == "yes" || args[2] == "late",
		Late: args[2] == "late" || args[2] == "unanswered"}
	v.world.SetClearance(args[1], known)
	v.memo.Update(v.world)
	return "", nil
}

// setFormer has a node know that another one may still translate an address for an EgressIP or EgressService; with "-"
// for both it no longer may. With "begun" it may not know yet of a claim of that object; with "shared" it is the claim
// of another pod with the address.
func (c *cluster) setFormer(args []string) (string, error) {
	v := c.views[args[0]]
	ip, err := netip.ParseAddr(args[1])
	if v == nil || err != nil {
		return "", fmt.Errorf("no node %s, or no address: %w", args[0], err)
	}
	var list []world.Former
	if args[2] != "-" {
		by := v.world.ClaimantOf(ref.OfKey(args[2]))
		list = []world.Former{{By: []world.Claimant{by}, To: destinations.Everything(), Nodes: []string{args[3]},
			Begun: slices.Contains(args[4:], "begun"), Shared: slices.Contains(args[4:], "shared")}}
	}
	v.world.SetFormers(world.PodAddr{IP: ip}, list)
	v.memo.Update(v.world)
	return "", nil
}

// reportOf is the report of a node whose targets have a plan: the addresses that it translates to, and the nodes with
// an address that it leads its own pods to.
func reportOf(node, boot string, p *plan.State) *world.Holding {
	h := &world.Holding{Node: node, BootID: boot, Holds: map[string][]netip.Addr{},
		Steers: map[string][]world.Assignment{}}
	for t, since := range p.Translated.Rows() {
		object := t.Object.Key()
		h.Holds[object] = append(h.Holds[object], t.IP)
		h.SayHeld(object, t.IP, since)
	}
	for s, ahead := range p.Steered.Rows() {
		if object, to := s.Object.Key(), (world.Assignment{Node: s.Node, IP: s.IP}); !ahead {
			h.Steers[object] = append(h.Steers[object], to)
			h.SaySteers(object, to, s.Since)
		}
	}
	return h
}

func (c *cluster) showPlan(args []string) (string, error) {
	v := c.views[args[0]]
	if v == nil {
		return "", fmt.Errorf("no node %s", args[0])
	}
	p, err := v.compilePlan()
	if err != nil {
		return "", err
	}
	words := args[1:]
	if len(words) > 0 && strings.HasPrefix(words[0], "feature=") {
		p = compile.Full(v.world, featuresNamed(strings.TrimPrefix(words[0], "feature=")))
		words = words[1:]
	}
	return joinLines(filterByWords(p.Lines(), words)), nil
}

// featuresNamed are the features of that name.
func featuresNamed(name string) []compile.Feature {
	return slices.DeleteFunc(all.Features(), func(f compile.Feature) bool { return f.Name() != name })
}

func filterByWords(l, words []string) []string {
	return slices.DeleteFunc(l, func(s string) bool {
		return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
	})
}

func (c *cluster) diffPlan(args []string) (string, error) {
	v := c.views[args[0]]
	if v == nil {
		return "", fmt.Errorf("no node %s", args[0])
	}
	now, err := v.compilePlan()
	if err != nil {
		return "", err
	}
	changed := strings.FieldsFunc(plan.DiffText(v.before, now), func(r rune) bool { return r == '\n' })
	return joinLines(filterByWords(changed, args[1:])), nil
}
