// Package echo answers TCP connections: a line with an address, and then whatever the client sends.
//
// In: a listener, and which address of a connection the line names. Out: the answers.
package echo

import (
	"fmt"
	"io"
	"net"
)

// Serve answers until the listener is closed. The address is that of the client, net.Conn.RemoteAddr, or that of the
// server that the connection has come to, net.Conn.LocalAddr.
func Serve(l net.Listener, address func(net.Conn) net.Addr) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go answer(c, address(c))
	}
}

func answer(c net.Conn, address net.Addr) {
	defer c.Close()
	host, _, err := net.SplitHostPort(address.String())
	if err != nil {
		return
	}
	if _, err := fmt.Fprintln(c, host); err == nil {
		_, _ = io.Copy(c, c) // until the client ends it
	}
}
