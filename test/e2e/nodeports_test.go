package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
)

// TestPodsKeepOffTheirNodesPorts: a pod that leaves with its node's address cannot take a connection of the node by the
// choice of its source port, and does not leave with a port that is the node's to use.
func TestPodsKeepOffTheirNodesPorts(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	n.runs(pod{name: "p", node: c.nodes[0]})
	for i, ip := range c.hosts[0].IPs {
		n.leavesNodesConnection(ip, 20001+i)
		n.leavesWithPortOfPods(ip)
	}
}

// leavesNodesConnection has a pod connect to a host outside by the source port that the node's own connection has. The
// port is one of plan.PodPorts, which OVN gives to the pod if it can.
func (n *namespace) leavesNodesConnection(outside netip.Addr, port int) {
	n.t.Helper()
	to := netip.AddrPortFrom(outside, 8080).String()
	var conn net.Conn
	must(n.t, sandbox.InNetns(n.at["p"], func() (err error) {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{Port: port}, Timeout: connectTimeout}
		conn, err = dialer.DialContext(n.t.Context(), "tcp", to)
		return err
	}))
	defer conn.Close()
	must(n.t, ask(conn))
	client := n.clientAt("p", port)
	client.Timeout = time.Second
	if response, err := client.Get("http://" + to + "/clientip"); err == nil { // in local mode it gets another port
		response.Body.Close()
	}
	if err := ask(conn); err != nil {
		n.t.Errorf("connection of the node to %s, after a pod used its source port: %v", to, err)
	}
}

// ask makes one HTTP request over a connection that stays.
func ask(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(connectTimeout)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "GET /clientip HTTP/1.1\r\nHost: outside\r\n\r\n"); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// leavesWithPortOfPods sends a datagram from a node port's number, and looks at its source outside.
func (n *namespace) leavesWithPortOfPods(outside netip.Addr) {
	n.t.Helper()
	var server net.PacketConn
	must(n.t, sandbox.InNetns(n.c.hosts[0].Name, func() (err error) {
		server, err = net.ListenPacket("udp", netip.AddrPortFrom(outside, 0).String())
		return err
	}))
	defer server.Close()
	must(n.t, n.inside("p", func() error {
		dialer := net.Dialer{LocalAddr: &net.UDPAddr{Port: 30053}}
		conn, err := dialer.DialContext(n.t.Context(), "udp", server.LocalAddr().String())
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte("x"))
		return err
	}))
	must(n.t, server.SetDeadline(time.Now().Add(connectTimeout)))
	_, from, err := server.ReadFrom(make([]byte, 1))
	must(n.t, err)
	source := netip.MustParseAddrPort(from.String())
	if source.Port() < 11000 || source.Port() > 29999 {
		n.t.Errorf("a pod's datagram arrives from %v, want a port of 11000-29999", source)
	}
}
