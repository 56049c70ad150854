package controller

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/kube"
)

// TestMovesPassWords: whatever number of words waits to be written, what packets wait for is sent at once, and where
// there is no room for that either, it is the next.
func TestMovesPassWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		results := make(chan result, 1000)
		o := newOutbox(t.Context(), results)
		goOn := make(chan struct{})
		send := func(ctx context.Context) (string, error) {
			select {
			case <-goOn:
			case <-ctx.Done():
			}
			return "2", nil
		}
		write := func(key string, urgent bool) bool {
			return o.writeObject(target{key: key}, &kube.Write{Version: "1", Urgent: urgent}, time.Now(), send)
		}
		for i := range 1000 {
			write(fmt.Sprint("words", i), false)
		}
		if o.writing != parallelWords || len(o.words) != 1000-parallelWords {
			t.Fatalf("%d words are under way, %d wait", o.writing, len(o.words))
		}
		if !write("move", true) {
			t.Error("a move waits for words")
		}
		for i := range parallelWrites {
			write(fmt.Sprint("move", i), true)
		}
		if o.writing != parallelWrites || len(o.urgent) != parallelWords+1 {
			t.Fatalf("%d writes are under way, %d moves wait", o.writing, len(o.urgent))
		}
		if write("words999", true); o.urgent[parallelWords+1].key != "words999" {
			t.Error("words that became a move wait among words")
		}
		goOn <- struct{}{}
		o.takeResult(<-results)
		if next, is := o.nextQueued(); !is || next.key != "move15" {
			t.Errorf("after a write comes %q, want a move", next.key)
		}
		close(goOn)
	})
}
