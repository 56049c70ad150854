package nft

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"sigs.k8s.io/knftables"

	"github.com/egret-net/egret/internal/plan"
)

// wanted is what one table must hold of a part of a state, in the terms of held, with what can be refused without
// asking the kernel left out.
type wanted struct {
	objects map[object]wantedObject
	rules   map[string][]wantedRule // by chain, in order of name
	elems   []wantedElem
	refused []error
	former  *former // which other rows may go; nil: all other rows of the table
}

type wantedObject struct {
	owner       plan.Owner
	row, record string
	add         knftables.Object
	interval    bool
}

type wantedRule struct {
	owner                 plan.Owner
	row, name, hash, text string
}

type wantedElem struct {
	owner      plan.Owner
	row        string
	set        object
	key, value string
}

func (t *table) wantedOf(s *plan.State, p part) *wanted {
	w := &wanted{objects: map[object]wantedObject{}, rules: map[string][]wantedRule{}}
	if p = p.withParents(); p.isKnown() {
		w.former = t.formerOf(s, p)
	} else {
		t.aliases, t.devices = aliases{}, map[string]int{}
	}
	for k, spec := range plan.RowsOf(p.chains, s.NFTChains) {
		w.refuseRow(s.NFTChains.Owner(k), chainRow(k), t.wantChain(w, s, k, spec))
	}
	for k, text := range plan.RowsOf(p.rules, s.NFTRules) {
		if k.Chain.Family == t.family {
			w.refuseRow(s.NFTRules.Owner(k), ruleRow(k), w.wantRule(s, k, text))
		}
	}
	for _, rules := range w.rules {
		slices.SortFunc(rules, func(a, b wantedRule) int { return cmp.Compare(a.name, b.name) })
	}
	if t.hasSets() {
		t.wantElems(w, s, p, w.wantSets(s, p))
	}
	return w
}

// hasSets: the plan's sets are of the inet table.
func (t *table) hasSets() bool { return t.family == string(knftables.InetFamily) }

func (w *wanted) refuseRow(owner plan.Owner, row string, err error) {
	if err != nil {
		w.refused = append(w.refused, newRefusal(owner, row, err))
	}
}

// wantChain records the index of a netdev chain's link in the chain's definition: the kernel takes the chain's hook
// away with the link, and another link of that name does not bring it back.
func (t *table) wantChain(w *wanted, s *plan.State, k plan.NFTChain, spec plan.NFTChainSpec) error {
	if k.Family != t.family {
		return t.checkFamily(k)
	}
	o := object{"chain", k.Name}
	if err := checkChain(k, spec); err != nil {
		return err
	}
	definition := spec.String()
	if spec.Device != "" {
		index, ok := t.device(spec.Device)
		t.devices[spec.Device] = index
		if !ok {
			return fmt.Errorf("no link is named %s: waiting for it", spec.Device)
		}
		definition += " index=" + strconv.Itoa(index)
	}
	w.objects[o] = wantedObject{owner: s.NFTChains.Owner(k), row: chainRow(k), record: o.recordKey(definition),
		add: chainObject(k.Name, spec)}
	return nil
}

// checkFamily refuses, once, chains of families in which we have no table.
func (t *table) checkFamily(k plan.NFTChain) error {
	known := k.Family == string(knftables.InetFamily) || k.Family == string(knftables.NetDevFamily)
	if known || !t.hasSets() {
		return nil
	}
	return errors.New("family must be inet or netdev")
}

// wantRule leaves out the rules of a chain that was refused: that refusal speaks for them.
func (w *wanted) wantRule(s *plan.State, k plan.NFTRule, text string) error {
	if _, ok := s.NFTChains[k.Chain]; !ok {
		return errors.New("the plan has no such chain")
	}
	if err := errors.Join(checkName(k.Name), checkRule(text)); err != nil {
		return err
	}
	if _, ok := w.objects[object{"chain", k.Chain.Name}]; ok {
		w.rules[k.Chain.Name] = append(w.rules[k.Chain.Name], wantedRule{s.NFTRules.Owner(k), ruleRow(k), k.Name,
			ruleHash(text), text})
	}
	return nil
}

// wantSets returns the sets that are not refused, by name.
func (w *wanted) wantSets(s *plan.State, p part) map[string]object {
	sets := map[string]object{}
	for k, spec := range plan.RowsOf(p.sets, s.NFTSets) {
		o := setObject(k, spec)
		if err := checkSet(k.Name, spec); err != nil {
			w.refuseRow(s.NFTSets.Owner(k), setRow(k), err)
			continue
		}
		sets[k.Name] = o
		w.objects[o] = wantedObject{s.NFTSets.Owner(k), setRow(k), o.recordKey(spec.String()), setAdd(k.Name, spec),
			spec.Interval}
	}
	return sets
}

// wantElems leaves out the elements of a set that was refused, as wantRule does.
func (t *table) wantElems(w *wanted, s *plan.State, p part, sets map[string]object) {
	for k, value := range plan.RowsOf(p.elems, s.NFTElems) {
		o, ok := sets[k.Set]
		if !ok {
			if _, inPlan := s.NFTSets[plan.NFTSet{Name: k.Set}]; !inPlan {
				w.refuseRow(s.NFTElems.Owner(k), elemRow(k), errors.New("the plan has no such set"))
			}
			continue
		}
		if err := checkElem(k.Key, value); err != nil {
			w.refuseRow(s.NFTElems.Owner(k), elemRow(k), err)
			continue
		}
		at := spelledElem(k)
		t.aliases.noteKey(k, at)
		w.elems = append(w.elems, wantedElem{s.NFTElems.Owner(k), elemRow(k), o, at.Key, spellKey(value)})
	}
}

func setObject(k plan.NFTSet, spec plan.NFTSetSpec) object {
	if spec.Value != "" {
		return object{"map", k.Name}
	}
	return object{"set", k.Name}
}

func chainObject(name string, s plan.NFTChainSpec) *knftables.Chain {
	c := &knftables.Chain{Name: name}
	if s.Hook == "" {
		return c
	}
	c.Type, c.Hook = knftables.PtrTo(knftables.BaseChainType(s.Type)), knftables.PtrTo(knftables.BaseChainHook(s.Hook))
	c.Priority = knftables.PtrTo(knftables.BaseChainPriority(s.Priority))
	if s.Device != "" {
		c.Device = knftables.PtrTo(s.Device)
	}
	if s.Policy != "" {
		c.Policy = knftables.PtrTo(knftables.BaseChainPolicy(s.Policy))
	}
	return c
}

func setAdd(name string, s plan.NFTSetSpec) knftables.Object {
	var flags []knftables.SetFlag
	if s.Interval {
		flags = []knftables.SetFlag{knftables.IntervalFlag}
	}
	kind, expression := s.Key, ""
	if s.Value != "" {
		kind += " : " + s.Value
	}
	if s.TypeOf {
		kind, expression = "", kind
	}
	if s.Value != "" {
		return &knftables.Map{Name: name, Type: kind, TypeOf: expression, Flags: flags}
	}
	return &knftables.Set{Name: name, Type: kind, TypeOf: expression, Flags: flags}
}
