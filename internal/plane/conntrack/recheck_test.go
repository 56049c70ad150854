package conntrack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/planetest"
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
		if shrink(t, p, want); len(f.Entries()) != 3 {
			t.Errorf("at once there are %v", f.Entries())
		}
		f.Add(bare) // the rules were not back yet: they are in the next round
		if shrink(t, p, want); len(f.Entries()) != 3 {
			t.Errorf("in the next round there are %v", f.Entries())
		}
		for i := range 3 {
			f.Add(bare)
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

// unruly is a Fake in which a pod that goes on sending makes its connections again at once.
type unruly struct{ *Fake }

func (u unruly) Flush(ctx context.Context, entries ...Entry) error {
	err := u.Fake.Flush(ctx, entries...)
	for _, e := range entries {
		u.Add(e)
	}
	return err
}

// TestRulesStillAway: a pod that begins the same connections as long as rules are away is not an error, and its
// connections with a former source are.
func TestRulesStillAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFake(map[string]int{"GR_n1_snat": 5}, conn("10.244.1.5", "8.8.8.8", "10.244.1.5"))
		p := New(t.Context(), unruly{f}, f, own, slog.New(slog.DiscardHandler))
		p.Disturbed()
		shrink(t, p, sources("10.244.1.5", "172.18.0.50"))
		f.Add(conn("10.244.1.5", "8.8.4.4", "172.18.0.2"))
		<-p.Again()
		if p.Shrink(t.Context(), sources("10.244.1.5", "172.18.0.50")) == nil {
			t.Error("no error")
		}
	})
}

// TestLooksOfEachSource: a change of a Source during a look begins again for that Source, and for no other one.
func TestLooksOfEachSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, looks := time.Now(), map[string][]time.Duration{}
		a, b := plan.Source{Router: "a"}, plan.Source{Router: "b"}
		r := &recheck[plan.Source]{}
		r.due = func(sources []plan.Source) {
			for _, s := range sources {
				looks[s.Router] = append(looks[s.Router], time.Since(begin))
				if s == a && len(looks["a"]) == 1 {
					r.beginFor([]time.Duration{2 * time.Second, 4 * time.Second}, a)
				}
			}
		}
		r.beginFor([]time.Duration{time.Second, 2 * time.Second, 6 * time.Second}, a, b)
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff(map[string][]time.Duration{"a": {time.Second, 3 * time.Second, 5 * time.Second},
			"b": {time.Second, 2 * time.Second, 6 * time.Second}}, looks); diff != "" {
			t.Errorf("looked (-want +have)\n%s", diff)
		}
	})
}

// slow is a Fake that takes a second to list.
type slow struct{ *Fake }

func (s slow) Dump(ctx context.Context, zone int, like ...Entry) ([]Entry, error) {
	time.Sleep(time.Second)
	return s.Fake.Dump(ctx, zone, like...)
}

// TestLaterLooksTakeNoTimeOfTheLoop: where nothing is wrong, a later look takes no time of Shrink.
func TestLaterLooksTakeNoTimeOfTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFake(map[string]int{"GR_n1_snat": 5}, conn("10.244.1.5", "8.8.8.8", "172.18.0.50"))
		p := New(t.Context(), slow{f}, f, own, slog.New(slog.DiscardHandler))
		want := sources("10.244.1.5", "172.18.0.50")
		shrink(t, p, want)
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			select {
			case <-p.Again():
			case <-time.After(time.Second):
				continue
			}
			begin := time.Now()
			if shrink(t, p, want); time.Since(begin) > 0 {
				t.Errorf("Shrink took %s", time.Since(begin))
			}
		}
		if have := f.Dumps(); have < 3 || have > 1+len(lookAgain()) {
			t.Errorf("looked %d times", have)
		}
	})
}

// TestPauseBetweenLooks: however many Sources change, and whenever, later looks take a fifth of the time at most.
func TestPauseBetweenLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		begin := time.Now()
		r := &recheck[plan.Source]{due: func([]plan.Source) { looks.Add(1); time.Sleep(time.Second) }}
		for i := range 500 {
			r.beginFor(lookAgain(), plan.Source{Router: fmt.Sprint(i)})
			time.Sleep(100 * time.Millisecond)
		}
		passed, have := time.Since(begin), int(looks.Load())
		if most := int(passed/time.Second)/(1+lookPause) + 1; have > most || have < most-2 {
			t.Errorf("looked %d times in %s, want %d", have, passed, most)
		}
		time.Sleep(time.Hour)
	})
}

// TestOthersFlap: Sources of one pod that change all the time have nobody look at another pod's connections, and keep
// nobody from looking at these when it is time.
func TestOthersFlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFake(map[string]int{"GR_n1_snat": 5})
		p := newPlane(f)
		ip := func(i int) string { return fmt.Sprint("172.18.0.", 50+i%2) }
		shrink(t, p, sources())
		time.Sleep(time.Minute)
		s, last := sources("10.244.1.5", "172.18.0.50"), &plan.Rows{}
		shrink(t, p, s)
		begin, ended := time.Now(), []time.Duration{}
		for i := range 300 {
			r := &plan.Rows{}
			r.AddSource(plan.Source{Router: "GR_n1", Pod: addr("10.244.1.6")}, plan.SourceTo{To: plan.Everywhere,
				IP: addr(ip(i))})
			s.Replace(planetest.Owner("flaps"), last, r)
			shrink(t, p, s)
			if last = r; len(f.Entries()) == 0 {
				ended = append(ended, time.Since(begin).Round(time.Second))
				f.Add(conn("10.244.1.5", "8.8.8.8", "172.18.0.2"))
			}
			time.Sleep(100 * time.Millisecond)
		}
		if want := []time.Duration{0, time.Second, 2 * time.Second, 5 * time.Second, 20 * time.Second}; !slices.Equal(
			ended, want) {
			t.Errorf("another pod's connections were ended after %v, want %v", ended, want)
		}
	})
}

// TestDisturbedLeavesTheHostsOwn: a pod's connection whose destination somebody on the host translates, as a proxy of a
// metadata address or a host port does, was not begun without rules.
func TestDisturbedLeavesTheHostsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFake(map[string]int{"GR_n1_snat": 5})
		p, want := newPlane(f), sources("10.244.1.5", "172.18.0.50")
		e := conn("10.244.1.5", "169.254.169.254", "10.244.1.5")
		e.Reply.Src, e.Reply.SrcPort = netip.MustParseAddr("172.18.0.9"), 8181
		f.Add(e)
		p.Disturbed()
		<-p.Again()
		if shrink(t, p, want); len(f.Entries()) != 1 {
			t.Errorf("ended: %+v", e)
		}
	})
}

// unreadable is a Fake whose connections cannot be read while err is set.
type unreadable struct {
	*Fake
	err error
}

func (u *unreadable) Dump(ctx context.Context, zone int, like ...Entry) ([]Entry, error) {
	if u.err != nil {
		return nil, u.err
	}
	return u.Fake.Dump(ctx, zone, like...)
}

// TestUnreadableWhileDisturbed: a change of sources is followed by all later looks also where connections could not be
// read at first.
func TestUnreadableWhileDisturbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &unreadable{Fake: NewFake(map[string]int{"GR_n1_snat": 5})}
		p := New(t.Context(), u, u.Fake, newPlane(u.Fake).own, slog.New(slog.DiscardHandler))
		shrink(t, p, sources("10.244.1.5", "172.18.0.50"))
		p.Disturbed()
		time.Sleep(restored - time.Millisecond)
		synctest.Wait()
		now := sources("10.244.1.5", "172.18.0.51")
		u.err = errors.New("interrupted")
		if p.Shrink(t.Context(), now) == nil {
			t.Fatal("no error")
		}
		u.err = nil
		shrink(t, p, now)
		<-p.again // of those after the disturbance
		looks := 0
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Second / 2) {
			looks += len(p.again)
			for len(p.again) > 0 {
				<-p.again
			}
		}
		if want := len(lookAgain()); looks != want {
			t.Errorf("looked %d times more, want %d", looks, want)
		}
	})
}
