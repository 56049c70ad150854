package conntrack

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestConnectionsAreLookedAtAgain: a connection that a cached flow of the datapath makes by the former rules, after the
// first look, is ended at a later one; at 1, 2, 5 and 20 s after the change, and then no more.
func TestConnectionsAreLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFake(map[string]int{"GR_n1_snat": 5})
		p, want := newPlane(f), sources("10.244.1.5", "172.18.0.50")
		shrink(t, p, want)
		begin, looks := time.Now(), []time.Duration{}
		for range 4 {
			f.Add(conn("10.244.1.5", "8.8.8.8", "172.18.0.2")) // by a flow that was cached
			<-p.Again()
			looks = append(looks, time.Since(begin))
			if shrink(t, p, want); len(f.Entries()) != 0 {
				t.Fatalf("after %s: %v is left", looks[len(looks)-1], f.Entries())
			}
		}
		if !slices.Equal(looks, []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 20 * time.Second}) {
			t.Errorf("looked after %v", looks)
		}
		select {
		case <-p.Again():
			t.Error("looks on though nothing has changed")
		case <-time.After(time.Hour):
		}
	})
}

// TestConnectionsUnderWayAreLookedAtSoon: where a connection was ended, a pod sends just then; what its next packet
// makes by a cached flow is not left for a second.
func TestConnectionsUnderWayAreLookedAtSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFake(map[string]int{"GR_n1_snat": 5})
		p, want := newPlane(f), sources("10.244.1.5", "172.18.0.50")
		f.Add(conn("10.244.1.5", "8.8.8.8", "172.18.0.2"))
		shrink(t, p, want)
		begin, looks := time.Now(), []time.Duration{}
		for range 8 {
			f.Add(conn("10.244.1.5", "8.8.8.8", "172.18.0.2"))
			<-p.Again()
			looks = append(looks, time.Since(begin))
			if shrink(t, p, want); len(f.Entries()) != 0 {
				t.Fatalf("after %s: %v is left", looks[len(looks)-1], f.Entries())
			}
		}
		if want := slices.Concat(lookSoon(), lookAgain()); !slices.Equal(looks, want) {
			t.Errorf("looked after %v, want %v", looks, want)
		}
		select {
		case <-p.Again():
			t.Error("looks on though nothing has changed")
		case <-time.After(time.Hour):
		}
	})
}

// TestOneChainOfLooks: a change during a look begins anew, and the former change's looks end with that one.
func TestOneChainOfLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, looks := time.Now(), []time.Duration{}
		r := &recheck{}
		r.due = func() {
			looks = append(looks, time.Since(begin))
			if len(looks) == 1 {
				r.begin([]time.Duration{2 * time.Second, 4 * time.Second})
			}
		}
		r.begin([]time.Duration{time.Second, 2 * time.Second, 6 * time.Second})
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []time.Duration{time.Second, 3 * time.Second, 5 * time.Second}; !slices.Equal(looks, want) {
			t.Errorf("looked after %v, want %v", looks, want)
		}
	})
}
