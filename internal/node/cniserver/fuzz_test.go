package cniserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"testing"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/egret-net/egret/internal/cni"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/plane/ovs"
)

const victim = "victim"

// FuzzServer sends whatever bytes to a server with one pod attached: it goes on answering, with errors of the
// specification, and the pod stays attached unless a DEL names its container or a GC leaves it out. No pod can be
// looked up, so that an ADD never comes to make links.
func FuzzServer(f *testing.F) {
	for _, body := range []string{
		`{"command":"ADD","containerID":"c","netns":"/x","ifName":"eth0","pod":{"namespace":"a","name":"b"},"config":{}}`,
		`{"command":"CHECK","containerID":"victim","netns":"/x","ifName":"eth0","pod":{"namespace":"a","name":"b"},"prevResult":{"cniVersion":"1.0.0","ips":[{"address":"10.244.1.5/24"}]}}`,
		`{"command":"CHECK","containerID":"victim","netns":"/x","ifName":"eth0","pod":{"namespace":"a","name":"b"},"prevResult":{"cniVersion":"0.2.0","ip4":null}}`,
		`{"command":"DEL","containerID":"victim","ifName":"eth0"}`,
		`{"command":"DEL","containerID":"other","ifName":"eth0"}`,
		`{"command":"GC","validAttachments":[{"containerID":"victim","ifname":"eth0"}]}`,
		`{"command":"GC","validAttachments":[]}`,
		`{"command":"GC","validAttachments":[null]}`, `{"command":"STATUS"}`, `{"command":5}`, `null`, `[]`, `{`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		ports := cniserver.FromOVS(ovs.NewFake())
		if err := ports.AddPodPort(t.Context(), victimPort()); err != nil {
			t.Fatal(err)
		}
		answered(t, ports, body)
		left, err := ports.PodPorts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 && !mayDetach(body) {
			t.Errorf("%s detached a pod that it does not name", body)
		}
	})
}

func victimPort() cniserver.PodPort {
	return cniserver.PodPort{Bridge: "br-int", HostIface: "egvictim", IfaceID: "a_b", SandboxID: victim, Namespace: "a",
		Name: "b",
		UID:  "uid", NetNS: "/x", MAC: "0a:58:0a:f4:01:05", IPs: []netip.Addr{netip.MustParseAddr("10.244.1.5")}}
}

// answered posts the body to a server of its own.
func answered(t *testing.T, ports cniserver.Attachments, body []byte) {
	t.Helper()
	node := newFakeNode(&faults{step: map[string]bool{"Pod": true}}, "10.244.1.0/24")
	here, there := net.Pipe()
	served := make(chan error, 1)
	listener := &oneConn{conn: there, closed: make(chan struct{})}
	go func() {
		served <- cniserver.New(ports, node, slog.New(slog.DiscardHandler)).Serve(t.Context(), listener)
	}()
	dial := func(context.Context, string, string) (net.Conn, error) { return here, nil }
	transport := &http.Transport{DisableKeepAlives: true, DialContext: dial}
	response, err := (&http.Client{Transport: transport}).Post("http://egret-node"+cni.Path, "application/json",
		bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%q is not answered: %v", body, err)
	}
	text, err := io.ReadAll(response.Body)
	response.Body.Close()
	listener.Close()
	<-served
	if err != nil || response.StatusCode == http.StatusBadRequest {
		return
	}
	answer := cni.Response{}
	if err := json.Unmarshal(text, &answer); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%q is answered by %s %q, %v", body, response.Status, text, err)
	}
	if answer.Result != nil || answer.Error != nil && (answer.Error.Code == types.ErrUnknown ||
		answer.Error.Msg == "") {
		t.Errorf("%q is answered by %s", body, text)
	}
}

// mayDetach says whether a request is to detach the victim.
func mayDetach(body []byte) bool {
	r := cni.Request{}
	if json.NewDecoder(bytes.NewReader(body)).Decode(&r) != nil || r.Validate() != nil {
		return false
	}
	listed := func(a types.GCAttachment) bool { return a.ContainerID == victim }
	return r.Command == cni.Del && r.ContainerID == victim || r.Command == cni.GC &&
		!slices.ContainsFunc(*r.ValidAttachments, listed)
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.closed
	return nil, errors.New("closed")
}

func (l *oneConn) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
