package ovn

import (
	"errors"
	"log/slog"
	ossignal "os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovn/ovntest"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// TestFullDisk: while the database's disk is full no row is refused, the plane fails, and says why; when there is room
// again, it goes on.
func TestFullDisk(t *testing.T) {
	ossignal.Ignore(syscall.SIGXFSZ) // servers inherit that
	defer ossignal.Reset(syscall.SIGXFSZ)
	env := ovntest.StartDatabases(t)
	nb := NewNB(env.NB, Options{Hold: -1, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(nb.Close)
	if err := nb.Grow(t.Context(), plan.New()); err != nil {
		t.Fatal(err)
	}
	want := plan.New()
	for _, name := range []string{"a", "b"} {
		want.NB.Put(planetest.Owner("test"),
			plan.RowID{Table: "Logical_Switch", Name: name}, plan.Row{Cols: map[string]any{}})
	}
	env.Fill("nb")
	err := nb.Grow(t.Context(), want)
	if refused := (*plane.Refused)(nil); err == nil || errors.As(err, &refused) || plane.OnlyRefusals(err) ||
		!strings.Contains(err.Error(), "has room") {
		t.Errorf("with a full disk: %v", err)
	}
	env.Clear("nb")
	if err := nb.Grow(t.Context(), want); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if have := env.NBCtl("ls-list"); strings.Count(have, "(") != 2 {
		t.Errorf("switches: %q", have)
	}
}
