package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
)

// moments are when things were first seen.
type moments struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

func newMoments() *moments { return &moments{seen: map[string]time.Time{}} }

func (m *moments) note(what string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, is := m.seen[what]; !is {
		m.seen[what] = now
	}
}

// at is when something was seen; it waits a little for it.
func (m *moments) at(ctx context.Context, what string) (time.Time, error) {
	var t time.Time
	return t, until(ctx, 5*time.Second, 5*time.Millisecond, func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		var is bool
		if t, is = m.seen[what]; !is {
			return fmt.Errorf("not seen: %s", what)
		}
		return nil
	})
}

// assigned and held name the moments of an EgressIP, assignedTo and heldBy those of it and a node.
func assigned(name string) string         { return "assigned " + name }
func held(name string) string             { return "held " + name }
func assignedTo(name, node string) string { return "assigned " + name + " " + node }
func heldBy(name, node string) string     { return "held " + name + " " + node }

// watchEgressIPs notes when statuses name a node, and when nodes say that they hold.
func (c *cluster) watchEgressIPs(ctx context.Context, m *moments) error {
	err := watchAll(ctx, c.egret.EgressIP, "egressips", func(o *v1.EgressIP, now time.Time) {
		if len(o.Status.Items) > 0 {
			m.note(assigned(o.Name), now)
		}
		for _, i := range o.Status.Items {
			m.note(assignedTo(o.Name, i.Node), now)
		}
	})
	if err != nil {
		return err
	}
	return watchAll(ctx, c.egret.Egret, "egressnodes", func(o *egretv1.EgressNode, now time.Time) {
		for _, h := range o.Status.Holding {
			m.note(held(h.EgressIP), now)
			m.note(heldBy(h.EgressIP, o.Name), now)
		}
	})
}

// watchAll shows see all objects of a resource, and each as it changes, from when it returns until ctx is done. It lists them anew when the watch
// ends, as a busy API server has it with slow readers.
func watchAll[T any](ctx context.Context, client rest.Interface, resource string, see func(*T, time.Time)) error {
	show := func(o any) { see(o.(*T), time.Now()) }
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client, resource, metav1.NamespaceAll, fields.Everything()),
		ObjectType:    any(new(T)).(runtime.Object),
		Handler:       cache.ResourceEventHandlerFuncs{AddFunc: show, UpdateFunc: func(_, o any) { show(o) }},
	})
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("watch %s: %w", resource, context.Cause(ctx))
	}
	return nil
}

// zone follows a node's Northbound: when transactions that ask for confirmation were written, and when the hypervisor had them.
type zone struct {
	*job
	mu     sync.Mutex
	events []zoneEvent
}

type zoneEvent struct {
	at             time.Time
	written, ready int64 // nb_cfg, hv_cfg
}

func (c *cluster) watchZone(node string) (*zone, error) {
	j, err := c.start(node, "ovsdb-client", "--format=csv", "--no-headings", "monitor", "unix:/run/ovn/ovnnb_db.sock", "OVN_Northbound", "NB_Global", "nb_cfg,hv_cfg")
	if err != nil {
		return nil, err
	}
	z := &zone{job: j}
	go z.read(j.stdout)
	return z, nil
}

// read takes lines such as "UUID,new,6,5".
func (z *zone) read(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		now := time.Now()
		fields := strings.Split(lines.Text(), ",")
		e := zoneEvent{at: now}
		if len(fields) != 4 || fields[1] == "old" {
			continue
		}
		if _, err := fmt.Sscan(fields[2]+" "+fields[3], &e.written, &e.ready); err != nil {
			continue
		}
		z.mu.Lock()
		z.events = append(z.events, e)
		z.mu.Unlock()
	}
}

// change is the first transaction after a time: when it was written, and when the hypervisor had it.
func (z *zone) change(ctx context.Context, after time.Time) (written, ready time.Time, err error) {
	err = until(ctx, 5*time.Second, 5*time.Millisecond, func() error {
		z.mu.Lock()
		defer z.mu.Unlock()
		var ok bool
		if written, ready, ok = firstChange(z.events, after); !ok {
			return fmt.Errorf("no change of the zone reached the hypervisor")
		}
		return nil
	})
	return written, ready, err
}

func firstChange(events []zoneEvent, after time.Time) (written, ready time.Time, ok bool) {
	var before, number int64
	for _, e := range events {
		switch {
		case !e.at.After(after):
			before = max(before, e.written)
		case number == 0 && e.written > before:
			number, written = e.written, e.at
		}
		if number > 0 && e.ready >= number {
			return written, e.at, true
		}
	}
	return written, ready, false
}

// last is the last transaction that was written before a time: when it was written, and when the hypervisor had it.
func (z *zone) last(ctx context.Context, before time.Time) (written, ready time.Time, err error) {
	err = until(ctx, 5*time.Second, 5*time.Millisecond, func() error {
		z.mu.Lock()
		defer z.mu.Unlock()
		var ok bool
		if written, ready, ok = lastChange(z.events, before); !ok {
			return fmt.Errorf("the zone's last change did not reach the hypervisor")
		}
		return nil
	})
	return written, ready, err
}

func lastChange(events []zoneEvent, before time.Time) (written, ready time.Time, ok bool) {
	var number int64
	for _, e := range events {
		if e.written > number && !e.at.After(before) {
			number, written, ok = e.written, e.at, false
		}
		if !ok && number > 0 && e.ready >= number {
			ready, ok = e.at, true
		}
	}
	return written, ready, ok
}
