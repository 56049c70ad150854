package node

import (
	"context"
	"log/slog"
	"maps"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/heal"
	"github.com/egret-net/egret/internal/host"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// TestOverwrittenAnnotationIsWrittenAgain: what the Node says otherwise than the agent is written again at once, with
// growing pauses however often the agent looks, and without being asked again. What the Node says rightly is left
// alone, and so is a Node of before the last write.
func TestOverwrittenAnnotationIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var writes atomic.Int64
		p := newPublisher("n1", nil, nil, func(context.Context, map[string]string) (string, error) {
			return strconv.FormatInt(100*writes.Add(1), 10), nil
		}, slog.New(slog.DiscardHandler))
		go p.annotations.deliverUntilDone(t.Context())
		n := compiletest.Node(1)
		own := host.NodeAnnotations("n1", compiletest.Host("n1"), n, compiletest.Config(world.SharedGateway))
		garbled, lacking := maps.Clone(own), maps.Clone(own)
		garbled["k8s.ovn.org/host-cidrs"] = "garbage"
		delete(lacking, "k8s.ovn.org/zone-name")
		look := func(annotations map[string]string, version, times, want int) {
			t.Helper()
			n.Version, n.Published = strconv.Itoa(version), kube.Published(annotations)
			for range times {
				p.publishAnnotations(n, own)
				synctest.Wait()
			}
			if have := int(writes.Load()); have != want {
				t.Errorf("%d writes, want %d", have, want)
			}
		}
		look(nil, 1, 1, 1)
		time.Sleep(time.Minute)
		look(nil, 99, 5, 1) // the watch is late
		look(own, 100, 5, 1)
		look(garbled, 101, 5, 2)
		look(garbled, 101, 5, 2) // late again
		look(lacking, 201, 5, 2)
		time.Sleep(heal.FirstPause)
		synctest.Wait()
		look(lacking, 201, 5, 3)
		look(garbled, 301, 5, 3)
		time.Sleep(heal.FirstPause)
		look(garbled, 301, 5, 4)
		look(own, 401, 5, 4)
		time.Sleep(2 * time.Minute)
		look(garbled, 402, 1, 5)
	})
}

// TestOverwrittenReportIsWrittenAgain: an EgressNode that somebody else writes gets the agent's words again, with
// growing pauses. A watch that is late changes nothing. A restore of etcd has all written again.
func TestOverwrittenReportIsWrittenAgain(t *testing.T) {
	clients, err := kube.NewClients(&rest.Config{Host: "http://127.0.0.1:1", QPS: -1}) // the test is the watch
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		source := kube.NewSource(clients, log, kube.EgressNodes())
		watch := func(version int) {
			t.Helper()
			o := &egretv1.EgressNode{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: strconv.Itoa(version)}}
			if err := source.Observe(o); err != nil {
				t.Fatal(err)
			}
		}
		var writes atomic.Int64
		p := newPublisher("n1", source, func(context.Context, Report) (string, error) {
			version := 100 * int(writes.Add(1))
			watch(version)
			return strconv.Itoa(version), nil
		}, nil, log)
		go p.reports.deliverUntilDone(t.Context())
		look := func(want int) {
			t.Helper()
			for range 5 {
				p.reports.putValue(Report{Owner: "uid"})
				synctest.Wait()
			}
			if have := int(writes.Load()); have != want {
				t.Errorf("%d writes, want %d", have, want)
			}
		}
		watch(9)
		look(1)
		watch(101)
		look(2)
		watch(150)
		look(2) // of before the last write
		watch(201)
		look(2)
		time.Sleep(heal.FirstPause)
		synctest.Wait()
		look(3)
		p.reports.forgetSent()
		look(4)
	})
}
