package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
)

// Scripts of a node. OVN's databases go onto a small file system of their own before it is filled: never the
// machine's disk.
const (
	fillDisk = `set -e
cp -a /var/lib/ovn /run/ovn-copy
mount -t tmpfs -o size=24m tmpfs /var/lib/ovn
cp -a /run/ovn-copy/. /var/lib/ovn
rm -r /run/ovn-copy`
	useUp     = `dd if=/dev/zero of=/var/lib/ovn/filler bs=4k 2>/dev/null; test "$(df --output=avail /var/lib/ovn | tail -1)" -eq 0`
	emptyDisk = `set -e
rm -f /var/lib/ovn/filler
cp -a /var/lib/ovn /run/ovn-copy
umount -l /var/lib/ovn
cp -a /run/ovn-copy/. /var/lib/ovn
rm -r /run/ovn-copy`
)

// do makes a fault happen.
func (r *run) do(ctx context.Context, f fault) error {
	c := r.cluster
	switch f.kind {
	case kill:
		return r.signal(ctx, f, syscall.SIGKILL)
	case freeze:
		return r.signal(ctx, f, syscall.SIGSTOP)
	case stop:
		return c.StopProcess(ctx, f.node, f.object)
	case power:
		return c.PowerOff(f.node)
	case cutAPI:
		return c.Partition(ctx, f.node, sandbox.FromAPI)
	case cutFabric:
		return c.Partition(ctx, f.node, sandbox.FromFabric)
	case cutBoth:
		return c.Partition(ctx, f.node, sandbox.FromBoth)
	case fullDisk:
		if err := r.moveDatabases(ctx, f.node, fillDisk); err != nil {
			return err
		}
		_, err := c.ExecIn(ctx, f.node, "sh", "-c", useUp)
		return err
	case noAPI:
		return c.StopControlPlane(ctx)
	case unlabel:
		return persist(ctx, func() error { return c.LabelEgress(ctx, f.node, false) })
	case cordon:
		return persist(ctx, func() error { return c.PatchNode(ctx, f.node, `{"spec":{"unschedulable":true}}`) })
	case respec:
		return r.respec(ctx, f.object, egressIPs[f.object].other)
	case exchange:
		a, b := exchanged[0], exchanged[1]
		return errors.Join(r.respec(ctx, a, egressIPs[b].usual), r.respec(ctx, b, egressIPs[a].usual))
	case retraffic:
		return persist(ctx, func() error { return c.retraffic(ctx, 1) })
	case relabel:
		return r.relabel(ctx, f.object)
	case recreate:
		return c.recreatePod(ctx, r.record.senders[f.object])
	}
	return fmt.Errorf("no way to %s", f.kind)
}

// undo ends a fault.
func (r *run) undo(ctx context.Context, f fault) error {
	c := r.cluster
	switch f.kind {
	case freeze:
		return r.signal(ctx, f, syscall.SIGCONT)
	case stop:
		return c.StartProcess(ctx, f.node, f.object)
	case power:
		return c.PowerOn(ctx, f.node)
	case cutAPI, cutFabric, cutBoth:
		return c.Heal(ctx, f.node)
	case fullDisk:
		return r.moveDatabases(ctx, f.node, emptyDisk)
	case noAPI:
		return c.StartControlPlane(ctx)
	case unlabel:
		return persist(ctx, func() error { return c.LabelEgress(ctx, f.node, true) })
	case cordon:
		return persist(ctx, func() error { return c.PatchNode(ctx, f.node, `{"spec":{"unschedulable":null}}`) })
	case respec:
		return r.respec(ctx, f.object, egressIPs[f.object].usual)
	case exchange:
		a, b := exchanged[0], exchanged[1]
		return errors.Join(r.respec(ctx, a, egressIPs[a].usual), r.respec(ctx, b, egressIPs[b].usual))
	case retraffic:
		return persist(ctx, func() error { return c.retraffic(ctx, 0) })
	case relabel:
		return r.relabel(ctx, f.object)
	}
	return nil
}

// signal reaches the process also in the moment between its end and its next start.
func (r *run) signal(ctx context.Context, f fault, s syscall.Signal) error {
	return until(ctx, 10*time.Second, func() error { return r.cluster.SignalProcess(ctx, f.node, f.object, s) })
}

// moveDatabases runs a script on a node while its databases are down.
func (r *run) moveDatabases(ctx context.Context, node, script string) error {
	databases := []string{"ovsdb-nb", "ovsdb-sb"}
	for _, d := range databases {
		if err := r.cluster.StopProcess(ctx, node, d); err != nil {
			return err
		}
	}
	_, err := r.cluster.ExecIn(ctx, node, "sh", "-c", script)
	for _, d := range databases {
		err = errors.Join(err, r.cluster.StartProcess(ctx, node, d))
	}
	return err
}

// persist asks the API server until it does as it is told, for longer than a fault lasts: the server starts again, or a
// kubelet removes a pod.
func persist(ctx context.Context, ask func() error) error { return until(ctx, 2*longest, ask) }

// respec and relabel write down what pods are to be seen with from now on.

func (r *run) respec(ctx context.Context, name string, n []int) error {
	ips := r.cluster.addresses(name, n)
	r.note(func() { r.record.addresses[name] = ips })
	return persist(ctx, func() error { return r.cluster.respec(ctx, name, ips) })
}

func (r *run) relabel(ctx context.Context, pod string) error {
	s, asked := r.record.senders[pod], time.Now()
	group := otherOf[s.group.last()]
	r.note(func() { s.group = append(s.group, change[string]{asked: asked, value: group}) })
	err := persist(ctx, func() error { return r.cluster.LabelPod(ctx, namespace, pod, groupKey, group) })
	r.note(func() { s.group[len(s.group)-1].done = time.Now() })
	return err
}
