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

// TestWhatWasBegunWithoutRules: when rules were away for a moment, what pods began meanwhile is ended, and what they
// begin before the last rule is back; other connections of the host are not.
func TestWhatWasBegunWithoutRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFake(map[string]int{"GR_n1_snat": 5})
		p, want := newPlane(f), sources("10.244.1.5", "172.18.0.50")
		bare := conn("10.244.1.5", "8.8.8.8", "10.244.1.5")
		others := []Entry{conn("10.244.1.5", "10.244.2.7", "10.244.1.5"),
			conn("172.18.0.9", "10.244.1.5", "172.18.0.9"), conn("10.244.1.5", "8.8.4.4", "172.18.0.50")}
		for _, e := range append(others, bare) {
			f.Add(e)
		}
		if shrink(t, p, want); len(f.Entries()) != 4 {
			t.Fatalf("before anything happens there are %v", f.Entries())
		}
		p.Disturbed()
		for i := range 3 {
			if i > 0 {
				f.Add(bare)
			}
			<-p.Again()
			if shrink(t, p, want); len(f.Entries()) != 3 || slices.Contains(f.Entries(), bare) {
				t.Errorf("after look %d there are %v", i+1, f.Entries())
			}
		}
		f.Add(bare)
		<-p.Again()
		if shrink(t, p, want); !slices.Contains(f.Entries(), bare) {
			t.Error("goes on ending what is untranslated")
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
