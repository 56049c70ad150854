package metrics

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/egret-net/egret/internal/limit"
)

// counted is a registry with a gauge, and how often it was gathered.
type counted struct {
	*prometheus.Registry
	times atomic.Int64
}

func (c *counted) Gather() (families []*dto.MetricFamily, err error) {
	c.times.Add(1)
	return c.Registry.Gather()
}

func newCounted() *counted {
	r := prometheus.NewRegistry()
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "answer", Help: "The answer."},
		func() float64 { return 42 }))
	return &counted{Registry: r}
}

// start serves on an address of this host.
func start(t *testing.T, r prometheus.Gatherer, health func() Health) (address string) {
	t.Helper()
	return startWith(t, Files{}, r, health, slog.DiscardHandler)
}

func startWith(t *testing.T, f Files, r prometheus.Gatherer, health func() Health, log slog.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- serveListener(ctx, f, limit.Listen(l, bounds), r, health, slog.New(log)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func get(t *testing.T, url string) (status int, text string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return answer.StatusCode, string(b)
}

// Clients that keep their connections, each its own, do not keep others from asking.
func TestKeptConnections(t *testing.T) {
	at := start(t, newCounted(), well)
	for i := range 3 * bounds.PerPeer {
		client := &http.Client{Transport: &http.Transport{}}
		answer, err := client.Get("http://" + at + "/metrics")
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
}

// Requests of strangers do not read the targets: several at once have it done once.
func TestManyRequestsGatherOnce(t *testing.T) {
	r, asked := newCounted(), atomic.Int64{}
	at := start(t, r, func() Health { asked.Add(1); return well() })
	began := time.Now()
	var all sync.WaitGroup
	for range bounds.PerPeer / 2 {
		all.Go(func() {
			if status, text := get(t, "http://"+at+"/metrics"); status != http.StatusOK ||
				!strings.Contains(text, "\nanswer 42\n") {
				t.Errorf("%d: %s", status, text)
			}
			if status, text := get(t, "http://"+at+"/healthz"); status != http.StatusOK || text != "ok\n" {
				t.Errorf("%d: %s", status, text)
			}
		})
	}
	all.Wait()
	most := int64(time.Since(began)/freshness) + 1
	if have := r.times.Load(); have > most {
		t.Errorf("gathered %d times, want %d at most", have, most)
	}
	if have := asked.Load(); have > most {
		t.Errorf("asked for life %d times, want %d at most", have, most)
	}
}

func well() Health { return Health{Alive: true} }

// What is wrong is said whether the loop goes round or not; who waits for others is healthy.
func TestHealth(t *testing.T) {
	for _, c := range []struct {
		health Health
		status int
		text   string
	}{
		{Health{Alive: true}, http.StatusOK, "ok\n"},
		{Health{Alive: true, Problems: []string{"northd does not answer", "nor do others"}}, http.StatusOK,
			"ok\nnorthd does not answer\nnor do others\n"},
		{Health{Problems: []string{"northd does not answer"}}, http.StatusServiceUnavailable,
			"the loop does not go round: see the log for what it waits for\nnorthd does not answer\n"},
	} {
		at := start(t, newCounted(), func() Health { return c.health })
		if status, text := get(t, "http://"+at+"/healthz"); status != c.status || text != c.text {
			t.Errorf("%+v: %d %q, want %d %q", c.health, status, text, c.status, c.text)
		}
	}
}

// TestReady: a program is ready when nothing is missing and its loop goes round, whatever else is wrong.
func TestReady(t *testing.T) {
	const stands = "the loop does not go round: see the log for what it waits for\n"
	for _, c := range []struct {
		health Health
		status int
		text   string
	}{
		{Health{Alive: true}, http.StatusOK, "ok\n"},
		{Health{Alive: true, Problems: []string{"northd does not answer"}}, http.StatusOK, "ok\n"},
		{Health{Alive: true, Missing: []string{"no list", "no plan"}}, http.StatusServiceUnavailable,
			"no list\nno plan\n"},
		{Health{}, http.StatusServiceUnavailable, stands},
		{Health{Missing: []string{"no plan"}}, http.StatusServiceUnavailable, stands + "no plan\n"},
	} {
		at := start(t, newCounted(), func() Health { return c.health })
		if status, text := get(t, "http://"+at+"/readyz"); status != c.status || text != c.text {
			t.Errorf("%+v: %d %q, want %d %q", c.health, status, text, c.status, c.text)
		}
	}
}

// An answer is made anew when it is asked for and the last one is old, and no sooner.
func TestFreshness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c := newCache(func() int { n++; return n })
		ctx, cancel := context.WithCancel(t.Context())
		go c.refreshUntilDone(ctx)
		for _, step := range []struct {
			pause time.Duration
			want  int
		}{{0, 1}, {freshness - 1, 1}, {2, 2}, {time.Hour, 3}, {1, 3}} {
			time.Sleep(step.pause)
			if have, err := c.latestAnswer(ctx); err != nil || have != step.want {
				t.Errorf("after %s: answer %d, %v; want %d", step.pause, have, err, step.want)
			}
		}
		if n != 3 {
			t.Errorf("made %d times", n)
		}
		cancel()
	})
}

// A target that does not answer keeps nobody waiting for ever.
func TestSlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := newCache(func() bool { <-ctx.Done(); return true })
		go c.refreshUntilDone(ctx)
		began := time.Now()
		if _, err := c.latestAnswer(ctx); err == nil || time.Since(began) != slowest {
			t.Errorf("%v after %s, want an error after %s", err, time.Since(began), slowest)
		}
		cancel()
	})
}

// A request's header ends in time and is of a size, or the connection does.
func TestRequestsAreBounded(t *testing.T) {
	at := start(t, newCounted(), well)
	for name, begin := range map[string]string{
		"slow": "GET /metrics HTTP/1.1\r\nHost: x\r\n", "large": "GET /metrics HTTP/1.1\r\nHost: x\r\nX: " +
			strings.Repeat("x", 20<<10) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.WriteString(c, begin); err != nil {
				t.Fatal(err)
			}
			status, err := bufio.NewReader(c).ReadString('\n')
			if err == nil && !strings.Contains(status, "431") && !strings.Contains(status, "408") {
				t.Errorf("answered with %q", status)
			}
			if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Error("the connection stays open")
			}
		})
	}
}
