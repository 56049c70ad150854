package sandbox

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress prints what was reached, with the seconds since it began. It may be used from several goroutines.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
}

func newProgress(out io.Writer) *progress { return &progress{out: out, began: time.Now()} }

// printLine prints one line.
func (p *progress) printLine(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "%6.1fs  %s\n", time.Since(p.began).Seconds(), fmt.Sprintf(format, args...))
}
