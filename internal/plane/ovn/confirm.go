package ovn

import (
	"context"
	"sync"
	"time"
)

// confirm follows hv_cfg: the number of the last transaction that every hypervisor of the zone has carried out.
type confirm struct {
	mu      sync.Mutex
	want    int64 // number of our last transaction
	have    int64 // hv_cfg
	late    bool  // somebody stopped waiting for want
	moved   chan struct{}
	reached chan struct{}
}

func newConfirm() *confirm {
	return &confirm{moved: make(chan struct{}), reached: make(chan struct{}, 1)}
}

// load starts anew from what a database says, which may be one that began again at zero.
func (c *confirm) load(nbCfg, hvCfg int64) {
	c.mu.Lock()
	if c.want == 0 || c.want > nbCfg {
		c.want = nbCfg
	}
	c.mu.Unlock()
	c.see(hvCfg)
}

func (c *confirm) expect(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.want = n
}

func (c *confirm) see(hvCfg int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.have == hvCfg {
		return
	}
	c.have = hvCfg
	close(c.moved)
	c.moved = make(chan struct{})
	if c.late && c.have >= c.want {
		c.late = false
		signal(c.reached)
	}
}

func (c *confirm) ok() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.have >= c.want
}

// wait returns when the last transaction is confirmed, or after d at most.
func (c *confirm) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		c.mu.Lock()
		done, moved := c.have >= c.want, c.moved
		c.late = !done
		c.mu.Unlock()
		if done {
			return
		}
		select {
		case <-moved:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// signal wakes whoever listens, now or later; signals that nobody has heard yet are one.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
