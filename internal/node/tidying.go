package node

import (
	"sync"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// tidying runs the cleaning of attachments outside the loop. Later rounds do not begin it again while it runs: while
// ovsdb-server does not answer, they would queue.
type tidying struct {
	again func()       // asks for a round
	start func(func()) // has a chore done beside the loop

	mu   sync.Mutex
	busy map[chore]struct{}
}

// chore is something to be done about one attachment.
type chore struct {
	at   *world.Attachment
	kind choreKind
}

type choreKind uint8

const (
	resume choreKind = iota
	release
)

func newTidying(again func()) *tidying {
	return &tidying{again: again, start: func(do func()) { go do() }, busy: map[chore]struct{}{}}
}

// beginChore does a chore, if it is not under way. Where do fails, a round is asked for later, which begins it again.
func (t *tidying) beginChore(c chore, do func() error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, busy := t.busy[c]; busy {
		return
	}
	t.busy[c] = struct{}{}
	t.start(func() {
		err := do()
		t.endChore(c)
		if err != nil {
			time.AfterFunc(lastRetry, t.again)
		}
	})
}

func (t *tidying) endChore(c chore) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, c)
}
