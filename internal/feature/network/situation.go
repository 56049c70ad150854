package network

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// situation has all that a decision about networks follows from, and what was decided so far.
type situation struct {
	view       *world.View
	namespaces []*world.Namespace
	requests   []*networks.Request // the oldest first
	// selected are the namespaces that each request is for, sorted.
	selected map[*networks.Request][]string
	// shown are the definitions that exist, by key, with what earlier decisions have changed of them.
	shown   map[string]*networks.Definition
	byAge   []*networks.Definition // shown, the oldest first
	pending []*networks.Definition // to be made by earlier decisions: the API may have them by now
	// madeFor are the definitions that were made for each request that is there.
	madeFor map[*networks.Request][]*networks.Definition
	owners  map[string]*networks.Request // by UID
	// definitions are what those should be that are decided about, by key.
	definitions map[string]*networks.Definition
	// primary is the definition of each namespace's network; numbers are of networks.
	primary map[string]*networks.Definition
	numbers map[string]int
	first   map[string]*networks.Definition // the oldest definition of each network
	refused map[string][]decide.Notice
	// problems are what keeps a request from having its network.
	problems map[*networks.Request][]decide.Notice
}

func newSituation(v *world.View) *situation {
	c := &situation{view: v, shown: map[string]*networks.Definition{}, definitions: map[string]*networks.Definition{},
		primary: map[string]*networks.Definition{}, numbers: map[string]int{}, first: map[string]*networks.Definition{},
		refused: map[string][]decide.Notice{}, problems: map[*networks.Request][]decide.Notice{},
		madeFor: map[*networks.Request][]*networks.Definition{}, owners: map[string]*networks.Request{},
		selected: map[*networks.Request][]string{}}
	for _, k := range []world.Kind{world.KindUserNetwork, world.KindClusterNetwork} {
		for r := range world.Each[networks.Request](v, k) {
			c.requests, c.owners[r.UID] = append(c.requests, r), r
		}
	}
	slices.SortFunc(c.requests, (*networks.Request).CompareAge)
	if slices.ContainsFunc(c.requests, (*networks.Request).IsCluster) {
		c.namespaces = slices.Collect(world.Each[world.Namespace](v, world.KindNamespace))
	}
	for _, r := range c.requests {
		c.selected[r] = c.namespacesOf(r)
	}
	for d := range world.Each[networks.Definition](v, world.KindDefinition) {
		if d.UID == "" { // by an earlier decision; this one may differ
			gone := *d
			gone.Unwanted = true
			c.definitions[d.Key()] = &gone
			continue
		}
		c.shown[d.Key()], c.byAge = d, append(c.byAge, d)
	}
	slices.SortFunc(c.byAge, (*networks.Definition).CompareAge)
	c.pending = slices.SortedFunc(maps.Values(c.definitions), (*networks.Definition).CompareAge)
	for _, d := range c.byAge {
		if r := c.requestOf(d); r != nil {
			c.madeFor[r] = append(c.madeFor[r], d)
		}
	}
	return c
}

// requestOf is the request that a definition was made for; nil: an administrator wrote it, or its request is gone.
func (c *situation) requestOf(d *networks.Definition) *networks.Request {
	r := c.owners[d.Owner.UID]
	if r == nil || d.Name != r.Name || d.Owner.Kind != objectOf(r) || !r.IsCluster() && d.Namespace != r.Namespace {
		return nil
	}
	return r
}

// judgeDefinitions goes through the definitions that exist, the oldest first. Each keeps the number and the namespace
// that it has.
func (c *situation) judgeDefinitions() {
	c.keepNumbers()
	for _, d := range c.byAge {
		switch {
		case d.Labelled || d.Served && c.requestOf(d) != nil:
			c.keepMade(d)
		case d.Served:
			c.judgeOwn(d)
		default:
			c.releaseDefinition(d)
		}
	}
}

// judgeOwn judges a definition that an administrator wrote. A namespace that is not known yet will be.
func (c *situation) judgeOwn(d *networks.Definition) {
	if (d.Deleting || c.view.Namespace(d.Namespace) == nil) && !d.Counts() {
		return
	}
	if text := c.whyRefused(d); text != "" {
		c.refuseDefinition(d, text)
		return
	}
	out := *d
	// No finalizer can be added to an object that is being deleted.
	out.Protected = !d.Deleting || d.Protected && c.isUsed(d)
	if c.giveNumber(&out); out.Number.ID == 0 {
		c.refuseDefinition(d, noNumber())
	}
}

// releaseDefinition takes its number and its finalizer from a definition that describes no primary network any more.
// Its author may have changed it while the number was being written.
func (c *situation) releaseDefinition(d *networks.Definition) {
	if !d.Protected && d.Number == (networks.Number{}) {
		return
	}
	out := *d
	out.Protected, out.Number = false, networks.Number{}
	c.definitions[d.Key()] = &out
}

// keepNumbers has networks keep their numbers, configurations and namespaces. Of two that have the same, the older
// keeps it.
func (c *situation) keepNumbers() {
	taken := map[int]bool{}
	for _, d := range slices.Concat(c.byAge, c.pending) {
		if !d.Counts() {
			continue
		}
		name := d.Config.Name
		if c.numbers[name] == 0 && !taken[d.Number.ID] {
			c.numbers[name], taken[d.Number.ID] = d.Number.ID, true
			c.first[name] = d
		}
		if c.primary[d.Namespace] == nil {
			c.primary[d.Namespace] = d
		}
	}
}

// isOthers says whether a namespace is another definition's.
func (c *situation) isOthers(namespace, key string) bool {
	primary := c.primary[namespace]
	return primary != nil && primary.Key() != key
}

// keepMade keeps a definition that was made for a request, as long as the request wants it or pods use it. Its contents
// follow from the request (judgeRequests).
func (c *situation) keepMade(d *networks.Definition) {
	out := *d
	r := c.requestOf(d)
	out.Unwanted = r == nil || !c.wants(r, d.Namespace)
	if (out.Unwanted || d.Deleting) && !c.isUsed(d) {
		out.Protected = false
	} else {
		out.Unwanted = false
	}
	if c.numbers[d.Config.Name] != d.Number.ID || c.isOthers(d.Namespace, d.Key()) {
		out.Number = networks.Number{}
	}
	c.definitions[d.Key()] = &out
}

// namespacesOf are those that a request is for, sorted.
func (c *situation) namespacesOf(r *networks.Request) (out []string) {
	switch {
	case r.Deleting:
		return nil
	case !r.IsCluster():
		return []string{r.Namespace}
	}
	for _, ns := range c.namespaces {
		if r.Selector.Matches(labels.Set(ns.Labels)) {
			out = append(out, ns.Name)
		}
	}
	return out
}

// wants says whether a request is for a namespace.
func (c *situation) wants(r *networks.Request, namespace string) bool {
	_, is := slices.BinarySearch(c.selected[r], namespace)
	return is
}

// isUsed says whether pods of a namespace are in the network of its definition.
func (c *situation) isUsed(d *networks.Definition) bool {
	return d.Counts() && c.podIn(d.Namespace) != ""
}

// podIn returns the first pod of a namespace that has an interface, or may get one; "": no pod has.
func (c *situation) podIn(namespace string) string {
	for _, p := range c.view.PodsIn(namespace) {
		if !p.HostNetwork && !p.Completed && p.Node != "" {
			return p.Key()
		}
	}
	return ""
}

// whyRefused returns why a definition that an administrator wrote is no network, or "". One that is a network stays one
// whatever others ask for later: pods may be in it.
func (c *situation) whyRefused(d *networks.Definition) string {
	first, ns := c.first[d.Config.Name], c.view.Namespace(d.Namespace)
	switch {
	case d.Problem != "":
		return d.Problem
	case c.isOthers(d.Namespace, d.Key()):
		return fmt.Sprintf("namespace %s has %s as its primary network: a namespace has one", d.Namespace,
			c.primary[d.Namespace].Config.Name)
	case first != nil && !first.Config.Equal(d.Config):
		return "it differs from the older definitions of network " + d.Config.Name
	case d.Counts():
		return ""
	case !ns.OwnNetwork:
		return unlabelled(d.Namespace)
	}
	for _, r := range c.requests {
		if r.Config.Name == d.Config.Name {
			return fmt.Sprintf("name %s is the network's of %s %s: choose another", d.Config.Name, objectOf(r), r.Key())
		}
	}
	return checkConfig(c.view.Config, d.Config)
}

func unlabelled(namespace string) string {
	return fmt.Sprintf("namespace %s was not made with label %s: its pods are in the default network. Make a namespace "+
		"that has it", namespace, LabelPrimaryNetwork)
}

func objectOf(r *networks.Request) string {
	if r.IsCluster() {
		return ref.ClusterUserDefinedNetwork
	}
	return ref.UserDefinedNetwork
}

// refuseDefinition takes its number and its finalizer from an administrator's definition, and notes why.
func (c *situation) refuseDefinition(d *networks.Definition, text string) {
	out := *d
	out.Number = networks.Number{}
	out.Protected = false
	c.definitions[d.Key()] = &out
	c.refused[d.Key()] = []decide.Notice{{Finding: decide.Finding{Kind: reasonRefused, Detail: text},
		Event: reasonRefused, Message: text}}
}

// giveNumber decides that a definition has its network's number.
func (c *situation) giveNumber(d *networks.Definition) {
	name := d.Config.Name
	if c.numbers[name] == 0 {
		c.numbers[name] = c.freeNumber()
	}
	if d.Number = (networks.Number{ID: c.numbers[name], Name: name}); d.Number.ID == 0 {
		d.Number = networks.Number{}
	}
	c.definitions[d.Key()], c.primary[d.Namespace] = d, d
	if c.first[name] == nil {
		c.first[name] = d
	}
}

// freeNumber is the lowest free number, or 0.
func (c *situation) freeNumber() int {
	taken := map[int]bool{}
	for _, id := range c.numbers {
		taken[id] = true
	}
	for id := 1; id <= world.MaxNetworkID; id++ {
		if !taken[id] {
			return id
		}
	}
	return 0
}
