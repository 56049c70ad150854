package node

import (
	"sync"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// tidying has what is to be done about attachments done outside the loop. What is under way is not begun again by later
// rounds: while ovsdb-server does not answer, they would queue.
type tidying struct {
	again func() // asks for a round

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

func newTidying(again func()) *tidying { return &tidying{again: again, busy: map[chore]struct{}{}} }

// begin does a chore, if it is not under way. Where do fails, a round is asked for later, which begins it again.
func (t *tidying) begin(c chore, do func() error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, busy := t.busy[c]; busy {
		return
	}
	t.busy[c] = struct{}{}
	go func() {
		err := do()
		t.end(c)
		if err != nil {
			time.AfterFunc(lastRetry, t.again)
		}
	}()
}

func (t *tidying) end(c chore) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, c)
}
