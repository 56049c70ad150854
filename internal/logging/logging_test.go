package logging_test

import (
	"encoding/json"
	"flag"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/logging"
)

// written keeps what is logged, by whatever goroutine.
type written struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *written) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func options(t *testing.T, args ...string) (*logging.Options, error) {
	t.Helper()
	f := flag.NewFlagSet("egret", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	o := logging.AddFlag(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o, o.CheckFormat()
}

func TestFormats(t *testing.T) {
	for format, want := range map[string]string{"text": `level=INFO msg="a message" key=value after=1.5s n=3`,
		"json": `"level":"INFO","msg":"a message","key":"value","after":"1.5s","n":3}`} {
		o, err := options(t, "--log-format="+format)
		if err != nil {
			t.Fatal(err)
		}
		var out written
		o.StartLog(t.Context(), &out).Info("a message", "key", "value", "after", 1500*time.Millisecond, "n", 3)
		if have := strings.TrimSpace(out.all()); !strings.HasSuffix(have, want) {
			t.Errorf("%s: %s", format, have)
		}
		if is := json.Valid([]byte(out.all())); is != (format == "json") {
			t.Errorf("%s: JSON: %t", format, is)
		}
	}
	if _, err := options(t, "--log-format=yaml"); err == nil || err.Error() != `--log-format "yaml": give text or json` {
		t.Errorf("yaml: %v", err)
	}
}

// TestSignals sends this process signals: the level follows, and the log says so.
func TestSignals(t *testing.T) {
	o, err := options(t)
	if err != nil {
		t.Fatal(err)
	}
	var out written
	log := o.StartLog(t.Context(), &out)
	send := func(s syscall.Signal, told string) {
		t.Helper()
		if err := syscall.Kill(syscall.Getpid(), s); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(10 * time.Second); !strings.Contains(out.all(), told); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("after %v the log has %q", s, out.all())
			}
		}
	}
	log.Debug("before")
	send(syscall.SIGUSR1, "to=DEBUG\n")
	log.Debug("between")
	send(syscall.SIGUSR2, "to=INFO\n")
	log.Debug("after")
	for message, want := range map[string]bool{"before": false, "between": true, "after": false} {
		if has := strings.Contains(out.all(), "msg="+message); has != want {
			t.Errorf("the log has the message %q: %t, want %t", message, has, want)
		}
	}
	o.Verbose = true
	o.StartLog(t.Context(), &out).Debug("verbose")
	if !strings.Contains(out.all(), "level=DEBUG msg=verbose") {
		t.Errorf("with -v the log has %q", out.all())
	}
}
