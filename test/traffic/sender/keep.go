package main

import (
	"fmt"
	"net"
	"time"
)

// What is kept: TCP connections over which the client speaks or the server, or datagrams from one port.
const (
	clientSpeaks = "client"
	serverSpeaks = "server"
	datagrams    = "udp"
)

const (
	// chatter is the least time between two lines over what is kept, and apartOfAll what each of many adds to it: a
	// process sends 100 lines a second.
	chatter    = 100 * time.Millisecond
	apartOfAll = 10 * time.Millisecond
	// keepAlive is how long a connection may be silent before the client's kernel asks the server.
	keepAlive = time.Second
)

// keep opens a number of connections, each once, and says the line KIND over each for as long as it lives: after a
// pause and the answer to the line before, or at once after the answer if the server speaks, which pauses then. Of
// datagrams an answer may be lost. The source ports are those from the first on, or the kernel's choice if that is 0.
func keep(kind string, count, first int, to string) {
	pause := max(chatter, time.Duration(count)*apartOfAll)
	for i := range count {
		port := first
		if port > 0 {
			port += i
		}
		if kind == datagrams {
			go sayByDatagrams(port, to, pause)
		} else {
			go say(kind, port, to, pause)
		}
	}
}

func say(kind string, port int, to string, pause time.Duration) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{Port: port},
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive, Count: 60}}
	c, err := d.Dial("tcp", to)
	for answer := make([]byte, 64); err == nil; {
		if _, err = fmt.Fprintln(c, kind); err == nil {
			_, err = c.Read(answer)
		}
		if kind == clientSpeaks {
			time.Sleep(pause)
		}
	}
}

func sayByDatagrams(port int, to string, pause time.Duration) {
	d := net.Dialer{LocalAddr: &net.UDPAddr{Port: port}}
	c, err := d.Dial("udp", to)
	if err != nil {
		return
	}
	answered := 0
	for answer := make([]byte, 64); ; {
		_, _ = fmt.Fprintln(c, datagrams, answered) // ICMP's errors come back here, too
		_ = c.SetReadDeadline(time.Now().Add(pause))
		if _, err := c.Read(answer); err == nil {
			answered++
			time.Sleep(pause)
		}
	}
}
