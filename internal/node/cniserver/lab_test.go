package cniserver_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/containernetworking/plugins/pkg/testutils"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/plane/ovs"
)

// lab is a server with fakes behind it and the real plugin before it.
type lab struct {
	t      *testing.T
	faults *faults
	node   *fakeNode
	ports  cniserver.Attachments
	server *cniserver.Server
	socket string
	stop   func()
	cni    *libcni.CNIConfig
}

func newLab(t *testing.T, subnets ...string) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make network namespaces")
	}
	plugin, err := buildPlugin()
	if err != nil {
		t.Fatal(err)
	}
	waitForVeths(t, 0) // of the test before
	f := &faults{}
	l := &lab{
		t: t, faults: f, node: newFakeNode(f, subnets...), ports: faultyPorts{cniserver.FromOVS(ovs.NewFake()), f},
		socket: filepath.Join(t.TempDir(), "cni.sock"), cni: newCNI(plugin, t.TempDir()),
	}
	l.start()
	t.Cleanup(func() { l.stop() })
	return l
}

// newCNI names the executor: the library's default is set without a lock at the first call.
func newCNI(plugin, cache string) *libcni.CNIConfig {
	exec := &invoke.DefaultExec{RawExec: &invoke.RawExec{Stderr: os.Stderr}}
	return libcni.NewCNIConfigWithCacheDir([]string{plugin}, cache, exec)
}

// start starts a server, as a new process of the agent does.
func (l *lab) start() {
	l.t.Helper()
	listener, err := cniserver.Listen(l.socket)
	if err != nil {
		l.t.Fatal(err)
	}
	l.server = cniserver.New(l.ports, l.node, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.server.Serve(ctx, listener) }()
	l.stop = func() {
		cancel()
		if err := <-done; err != nil {
			l.t.Error(err)
		}
		l.stop = func() {}
	}
}

func (l *lab) conflist(version string, more ...string) *libcni.NetworkConfigList {
	l.t.Helper()
	plugin := strings.Join(append([]string{`"type":"egret-cni"`, fmt.Sprintf(`"socket":%q`, l.socket)}, more...), ",")
	list, err := libcni.ConfListFromBytes(fmt.Appendf(nil, `{"cniVersion":%q,"name":"egret","plugins":[{%s}]}`, version,
		plugin))
	if err != nil {
		l.t.Fatal(err)
	}
	return list
}

// pod is one sandbox, with a network namespace.
type pod struct {
	netns ns.NetNS
	conf  *libcni.RuntimeConf
}

func (l *lab) pod(name, container string) pod {
	l.t.Helper()
	netns, err := testutils.NewNS()
	if err != nil {
		l.t.Fatal(err)
	}
	p := pod{netns, runtimeConf(name, container, netns.Path())}
	l.t.Cleanup(p.destroy)
	return p
}

func runtimeConf(name, container, netns string) *libcni.RuntimeConf {
	return &libcni.RuntimeConf{ContainerID: container, NetNS: netns, IfName: "eth0", Args: [][2]string{
		{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", "default"}, {"K8S_POD_NAME", name},
		{"K8S_POD_INFRA_CONTAINER_ID", container}, {"K8S_POD_UID", "uid"},
	}}
}

func (p pod) destroy() {
	p.netns.Close()
	testutils.UnmountNS(p.netns)
}

func (l *lab) add(p pod) (*current.Result, error) {
	r, err := l.cni.AddNetworkList(l.t.Context(), l.conflist("1.0.0"), p.conf)
	if err != nil {
		return nil, err
	}
	return current.NewResultFromResult(r)
}

func (l *lab) mustAdd(p pod) *current.Result {
	l.t.Helper()
	r, err := l.add(p)
	if err != nil {
		l.t.Fatalf("ADD: %v", err)
	}
	return r
}

func (l *lab) del(p pod) error {
	return l.cni.DelNetworkList(l.t.Context(), l.conflist("1.0.0"), p.conf)
}

// wantNothingLeft looks for ports, veths, the loop's attachments, annotations of failed pods and addresses in use.
func (l *lab) wantNothingLeft() {
	l.t.Helper()
	l.faults.set("")
	if ports, err := l.ports.PodPorts(l.t.Context()); err != nil || len(ports) > 0 {
		l.t.Errorf("ports left: %v, %v", ports, err)
	}
	if veths := hostVeths(l.t); len(veths) > 0 {
		l.t.Errorf("veths left: %v", veths)
	}
	l.node.mu.Lock()
	if len(l.node.attached) > 0 {
		l.t.Errorf("the loop still knows %v", l.node.attached)
	}
	l.node.mu.Unlock()
	if inUse := l.server.AddressesInUse(); inUse != 0 {
		l.t.Errorf("%d containers still hold addresses", inUse)
	}
}

func hostVeths(t *testing.T) []string {
	t.Helper()
	h, err := netlink.NewHandleWithOptions(netlink.HandleOptions{RetryInterrupted: true}, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	links, err := h.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, link := range links {
		if link.Type() == "veth" {
			names = append(names, link.Attrs().Name)
		}
	}
	return names
}

// wantCode checks an error's code of the CNI specification, and what it says.
func wantCode(t *testing.T, err error, code uint, says string) {
	t.Helper()
	var e *types.Error
	if !errors.As(err, &e) {
		t.Errorf("error %v, want CNI code %d", err, code)
		return
	}
	if e.Code != code || !strings.Contains(e.Msg+e.Details, says) {
		t.Errorf("code %d %q %q, want %d and %q", e.Code, e.Msg, e.Details, code, says)
	}
}
