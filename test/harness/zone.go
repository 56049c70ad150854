package harness

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
)

// WatchAll shows see all objects of a resource, and each as it changes, from when it returns until ctx is done. It
// lists them anew when the watch ends, as a busy API server has it with slow readers.
func WatchAll[T any](ctx context.Context, client rest.Interface, resource string, see func(*T, time.Time)) error {
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

// Zone follows a node's Northbound: when transactions that ask for confirmation were written, and when the hypervisor
// had them.
type Zone struct {
	*Job
	mu     sync.Mutex
	events []zoneEvent
}

type zoneEvent struct {
	at             time.Time
	written, ready int64 // nb_cfg, hv_cfg
}

// WatchZone follows a node's Northbound until Stop.
func (c *Cluster) WatchZone(node string) (*Zone, error) {
	j, err := c.Monitor(node, "NB_Global", "nb_cfg,hv_cfg")
	if err != nil {
		return nil, err
	}
	z := &Zone{Job: j}
	go z.read(j.Stdout)
	return z, nil
}

// Monitor has ovsdb-client print a line "UUID,ACTION,COLUMNS" for each row of a node's Northbound, and for each change.
func (c *Cluster) Monitor(node, table, columns string) (*Job, error) {
	return c.Start(node, "ovsdb-client", "--format=csv", "--no-headings", "monitor", "unix:/run/ovn/ovnnb_db.sock",
		"OVN_Northbound", table, columns)
}

// confirmation is how long a change may take to the hypervisor.
const confirmation = time.Minute

// read takes lines such as "UUID,new,6,5".
func (z *Zone) read(r io.Reader) {
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

// Change is the first transaction after a time: when it was written, and when the hypervisor had it.
func (z *Zone) Change(ctx context.Context, after time.Time) (written, ready time.Time, err error) {
	err = Until(ctx, confirmation, 5*time.Millisecond, func() error {
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

// Last is the last transaction that was written before a time: when it was written, and when the hypervisor had it.
func (z *Zone) Last(ctx context.Context, before time.Time) (written, ready time.Time, err error) {
	err = Until(ctx, confirmation, 5*time.Millisecond, func() error {
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
