package node

import (
	"sync"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// chores are done outside of the loop, which asks for them round by round. One that is under way does not begin again:
// while ovsdb-server does not answer, they would queue.
type chores struct {
	again func()       // asks for a round
	start func(func()) // runs a chore beside the loop

	mu   sync.Mutex
	busy map[any]struct{}
}

// attachmentChore is something to be done about one attachment.
type attachmentChore struct {
	at   *world.Attachment
	kind choreKind
}

type choreKind uint8

const (
	resume choreKind = iota
	release
	uncordon
)

func newChores(again func()) *chores {
	return &chores{again: again, start: func(do func()) { go do() }, busy: map[any]struct{}{}}
}

// beginChore does a chore, if it is not under way. Where do fails, a round is asked for later, which begins it again.
func (c *chores) beginChore(chore any, do func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, busy := c.busy[chore]; busy {
		return
	}
	c.busy[chore] = struct{}{}
	c.start(func() {
		err := do()
		c.endChore(chore)
		if err != nil {
			time.AfterFunc(lastRetry, c.again)
		}
	})
}

func (c *chores) endChore(chore any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, chore)
}
