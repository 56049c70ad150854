package kube

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// TestSilence: it ends with what is read, and is measured by the time since the start, which a step of the clock does
// not change.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewContact(&rest.Config{})
		near, far := net.Pipe()
		defer near.Close()
		go func() {
			time.Sleep(5 * time.Second)
			_, _ = far.Write([]byte("x"))
		}()
		time.Sleep(4 * time.Second)
		if have := c.Silence(); have != 4*time.Second {
			t.Errorf("before a word: %v", have)
		}
		if _, err := (&receivingConn{near, c}).Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if have := c.Silence(); have != 2*time.Second {
			t.Errorf("two seconds after a word: %v", have)
		}
		if have := time.Duration(c.last.Load()); have != 5*time.Second {
			t.Errorf("the word came %v after the start, want 5s: is that a date?", have)
		}
	})
}
