package main

import (
	"os"
	"slices"
	"testing"
	"time"
)

func TestFlagsAndArguments(t *testing.T) {
	given := os.Args
	t.Cleanup(func() { os.Args = given })
	for _, c := range []struct{ given, args []string }{
		{[]string{"shop/web", "192.0.2.1", "--socket", "s"}, []string{"shop/web", "192.0.2.1"}},
		{[]string{"--socket", "s", "shop/web", "192.0.2.1"}, []string{"shop/web", "192.0.2.1"}},
		{[]string{"shop/web", "--socket=s", "192.0.2.1"}, []string{"shop/web", "192.0.2.1"}},
		{[]string{"-", "--socket", "s", "192.0.2.1"}, []string{"-", "192.0.2.1"}},
	} {
		os.Args = append([]string{"egret-node", "trace"}, c.given...)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if socket, args := parseMixed(questionFlags("trace", "", "")); socket != "s" ||
				!slices.Equal(args, c.args) {
				t.Errorf("%q: socket %q, arguments %q", c.given, socket, args)
			}
		}()
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			t.Fatalf("%q: no end", c.given)
		}
	}
}
