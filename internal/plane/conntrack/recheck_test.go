package conntrack

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
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

func (u *unreadable) Dump(ctx context.Context, zone int) ([]Entry, error) {
	if u.err != nil {
		return nil, u.err
	}
	return u.Fake.Dump(ctx, zone)
}

// TestUnreadableWhileDisturbed: a change of sources is followed by all later looks also where connections could not be
// read at first.
func TestUnreadableWhileDisturbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &unreadable{Fake: NewFake(map[string]int{"GR_n1_snat": 5})}
		p := New(u, u.Fake, newPlane(u.Fake).own, slog.New(slog.DiscardHandler))
		shrink(t, p, sources("10.244.1.5", "172.18.0.50"))
		p.Disturbed()
		time.Sleep(restored - time.Millisecond)
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
