// Command sender is the traffic of a test's pod: every 10 ms a UDP datagram to each address, whose payload names the
// pod.
//
//	sender NAME ADDRESS:PORT...
//	sender keep COUNT ADDRESS:PORT [client|server|udp FIRSTPORT]
//	sender connect COUNT ADDRESS:PORT
//	sender stream ADDRESS:PORT
//	sender serve PORT
//
// The second form keeps connections instead, see keep, the third keeps some and makes new ones all the time, and says
// what becomes of them, the fourth sends datagrams every 2 ms from one port, and the fifth answers connections with its
// own address.
//
// A payload is "egret-e2e NAME KIND NUMBER". Of kind new are those from a source port that is changed every 20
// datagrams, of kind old those from one that stays, which are sent every 50 ms: connections that outlive what happens
// meanwhile. Numbers count the datagrams of a kind to an address.
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/egret-net/egret/test/traffic/echo"
)

const (
	interval = 10 * time.Millisecond
	renew    = 20 // datagrams until the source port changes
	seldom   = 5  // intervals between datagrams of the old connection
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: sender NAME ADDRESS:PORT...")
		os.Exit(2)
	}
	switch os.Args[1] {
	case "stream":
		fail(stream(os.Args[2]))
	case "serve":
		fail(serve(os.Args[2]))
	}
	if count, err := strconv.Atoi(os.Args[2]); err == nil && len(os.Args) > 3 {
		switch os.Args[1] {
		case "keep":
			kind, first := clientSpeaks, 0
			if len(os.Args) == 6 {
				kind = os.Args[4]
				first, _ = strconv.Atoi(os.Args[5])
			}
			keep(kind, count, first, os.Args[3])
			select {}
		case "connect":
			makeConnections(os.Args[3], count)
		}
	}
	for _, to := range os.Args[2:] {
		go send(to, "egret-e2e "+os.Args[1])
	}
	select {}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// serve answers connections for ever.
func serve(port string) error {
	l, err := net.Listen("tcp", net.JoinHostPort("", port))
	if err == nil {
		echo.Serve(l, net.Conn.LocalAddr)
	}
	return err
}

// send goes on whatever happens: a datagram that cannot be sent is one that does not arrive.
func send(to, payload string) {
	var fresh, old net.Conn
	ticks := time.NewTicker(interval)
	for n := 0; ; n++ { // the first at once: a pod may send before anybody has looked at it
		if n%renew == 0 {
			fresh = dial(to, fresh)
		}
		write(fresh, fmt.Sprint(payload, " new ", n))
		if old == nil {
			old = dial(to, nil)
		}
		if n%seldom == 0 {
			write(old, fmt.Sprint(payload, " old ", n/seldom))
		}
		<-ticks.C
	}
}

func dial(to string, former net.Conn) net.Conn {
	if former != nil {
		former.Close()
	}
	c, err := net.Dial("udp", to)
	if err != nil {
		return nil
	}
	return c
}

func write(c net.Conn, payload string) {
	if c != nil {
		_, _ = c.Write([]byte(payload))
	}
}
