package main

import (
	"fmt"
	"net"
	"time"
)

// chatter is how often a line goes over a connection that is kept.
const chatter = 100 * time.Millisecond

// keep opens a number of TCP connections, each once, and says a line on each, "NUMBER LINE", for as long as it lives.
func keep(count int, to string) {
	for i := range count {
		go func() {
			c, err := net.Dial("tcp", to)
			for n := 0; err == nil; n++ {
				_, err = fmt.Fprintln(c, i, n)
				time.Sleep(chatter)
			}
		}()
	}
}
