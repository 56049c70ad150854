package ovs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/egret-net/egret/internal/plan"
)

const (
	ownerKey  = "egret" // whose an interface is
	ownerPlan = "plan"
	ownerPod  = "pod"
	keysKey   = "egret-keys" // which keys of a shared map are ours
)

var errNotOurs = errors.New("a port of that name exists and is not Egret's: remove it with `ovs-vsctl del-port`")

// wantIface is the Interface row of a planned port.
func wantIface(k plan.Port, spec plan.PortSpec) iface {
	i := iface{Name: k.Name, Type: spec.Type, ExternalIDs: map[string]string{ownerKey: ownerPlan}}
	if spec.MAC != "" {
		i.MAC = &spec.MAC
	}
	if spec.MTU != 0 {
		i.MTURequest = &spec.MTU
	}
	i.Options, i.BFD = parsePairs(spec.Options), parsePairs(spec.BFD)
	maps.Copy(i.ExternalIDs, parsePairs(spec.ExternalIDs))
	i.ExternalIDs[keysKey] = strings.Join(slices.Sorted(maps.Keys(i.ExternalIDs)), " ")
	return i
}

// parsePairs reads "k=v,k=v".
func parsePairs(text string) map[string]string {
	m := map[string]string{}
	for kv := range strings.SplitSeq(text, ",") {
		if key, value, ok := strings.Cut(kv, "="); ok {
			m[key] = value
		}
	}
	return m
}

// putPort brings port k to spec; at is what t has of that name.
func (d *DB) putPort(ctx context.Context, t topology, k plan.Port, spec plan.PortSpec) error {
	b, ok := t.bridges[k.Bridge]
	if !ok {
		return fmt.Errorf("bridge %s does not exist", k.Bridge)
	}
	want := wantIface(k, spec)
	at, ok := t.ports[k.Name]
	switch {
	case !ok:
		return d.insertPort(ctx, b, want, nil)
	case at.iface.ExternalIDs[ownerKey] != ownerPlan:
		return errNotOurs
	case at.bridge != k.Bridge:
		old := t.bridges[at.bridge]
		return d.insertPort(ctx, b, want, &removal{old, at.port})
	}
	ops, err := d.updateIface(at.iface, want)
	if err != nil {
		return err
	}
	return d.commitOps(ctx, ops)
}

// updateIface changes the columns and keys that differ.
func (d *DB) updateIface(have, want iface) ([]ovsdb.Operation, error) {
	want.ExternalIDs = mergeKeys(have.ExternalIDs, want.ExternalIDs)
	if have.Type == want.Type && equalPtr(have.MAC, want.MAC) && equalPtr(have.MTURequest, want.MTURequest) &&
		maps.Equal(have.ExternalIDs, want.ExternalIDs) && maps.Equal(have.Options, want.Options) &&
		maps.Equal(have.BFD, want.BFD) {
		return nil, nil
	}
	want.UUID = have.UUID
	return d.client.Where(&have).Update(&want, &want.Type, &want.MAC, &want.MTURequest, &want.ExternalIDs,
		&want.Options, &want.BFD)
}

// mergeKeys is have with our former keys (those its `egret-keys` lists) replaced by want.
func mergeKeys(have, want map[string]string) map[string]string {
	out := maps.Clone(have)
	if out == nil {
		out = map[string]string{}
	}
	for _, k := range strings.Fields(have[keysKey]) {
		delete(out, k)
	}
	delete(out, keysKey)
	maps.Copy(out, want)
	return out
}

// removal is a port to take off a bridge; OVSDB collects the rows that nothing refers to any more.
type removal struct {
	bridge bridge
	port   string
}

func (d *DB) removePort(r removal) ([]ovsdb.Operation, error) {
	return d.client.Where(&r.bridge).Mutate(&r.bridge, model.Mutation{Field: &r.bridge.Ports,
		Mutator: ovsdb.MutateOperationDelete, Value: []string{r.port}})
}

// insertPort makes a port with one interface on b, in the transaction that takes away old.
func (d *DB) insertPort(ctx context.Context, b bridge, i iface, old *removal) error {
	ops, err := d.insertOps(b, i, old)
	if err != nil {
		return fmt.Errorf("add port %s: %w", i.Name, err)
	}
	if err := d.commitOps(ctx, ops); err != nil {
		return fmt.Errorf("add port %s to %s: %w", i.Name, b.Name, err)
	}
	return nil
}

func (d *DB) insertOps(b bridge, i iface, old *removal) ([]ovsdb.Operation, error) {
	var ops []ovsdb.Operation
	if old != nil {
		remove, err := d.removePort(*old)
		if err != nil {
			return nil, err
		}
		ops = remove
	}
	i.UUID = "iface"
	p := &port{UUID: "port", Name: i.Name, Interfaces: []string{i.UUID}}
	create, err := d.createRows(&i, p)
	if err != nil {
		return nil, err
	}
	link, err := d.client.Where(&b).Mutate(&b, model.Mutation{Field: &b.Ports, Mutator: ovsdb.MutateOperationInsert,
		Value: []string{p.UUID}})
	if err != nil {
		return nil, err
	}
	return slices.Concat(ops, create, link), nil
}
