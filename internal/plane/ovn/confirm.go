package ovn

import (
	"sync"
	"time"

	"github.com/egret-net/egret/internal/plane"
)

// confirm follows hv_cfg: the number of the last transaction that every hypervisor of the zone has carried out.
type confirm struct {
	mu      sync.Mutex
	want    int64     // number of our last transaction
	at      time.Time // when that was
	have    int64     // hv_cfg
	awaited bool      // somebody was told that want is not reached
	reached chan struct{}
}

func newConfirm() *confirm { return &confirm{reached: make(chan struct{}, 1)} }

// loadCounters starts again from what a database says, which may have begun again at zero. Its last value counts, even
// if another wrote it: it may be a transaction of ours whose reply was lost.
func (c *confirm) loadCounters(nbCfg, hvCfg int64) {
	c.mu.Lock()
	c.want = nbCfg
	c.mu.Unlock()
	c.seeNumber(hvCfg)
}

func (c *confirm) expectNumber(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.want, c.at = n, time.Now()
}

func (c *confirm) seeNumber(hvCfg int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.have = hvCfg
	if c.awaited && c.have >= c.want {
		c.awaited = false
		plane.SignalOnce(c.reached)
	}
}

func (c *confirm) isConfirmed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.have >= c.want
}

// awaitsConfirm says whether the last transaction is still to be confirmed; if so, reached is signalled when it is.
func (c *confirm) awaitsConfirm() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaited = c.have < c.want
	return c.awaited
}

// sinceLast is how long ago the last transaction was.
func (c *confirm) sinceLast() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.at)
}
