package cni

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
)

const goodArgs = "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=a;K8S_POD_INFRA_CONTAINER_ID=c1;K8S_POD_UID=u1"

func request(command string, change func(*skel.CmdArgs)) (*Request, error) {
	a := &skel.CmdArgs{ContainerID: "c1", Netns: "/run/netns/a", IfName: "eth0", Args: goodArgs,
		StdinData: []byte(`{"cniVersion":"1.1.0","name":"egret","prevResult":{},"cni.dev/valid-attachments":[]}`)}
	change(a)
	c, err := ParseConfig(a.StdinData)
	if err != nil {
		return nil, err
	}
	r, err := NewRequest(command, a, c)
	if err != nil {
		return nil, err
	}
	return r, r.Validate()
}

func TestGoodRequest(t *testing.T) {
	for _, command := range []string{Add, Check, Del, GC, Status} {
		r, err := request(command, func(*skel.CmdArgs) {})
		if err != nil {
			t.Errorf("%s: %v", command, err)
			continue
		}
		if want := (Pod{Namespace: "default", Name: "a", UID: "u1", Sandbox: "c1"}); r.Pod != want {
			t.Errorf("%s: pod %+v, want %+v", command, r.Pod, want)
		}
	}
	if _, err := request(Del, func(a *skel.CmdArgs) { a.Netns, a.Args = "", "" }); err != nil {
		t.Errorf("DEL without netns and args: %v", err)
	}
}

func TestBadInput(t *testing.T) {
	config := func(text string) func(*skel.CmdArgs) {
		return func(a *skel.CmdArgs) { a.StdinData = []byte(text) }
	}
	for _, c := range []struct {
		name, command string
		change        func(*skel.CmdArgs)
		code          uint
		says          string
	}{
		{"unknown command", "MOVE", func(*skel.CmdArgs) {}, types.ErrInvalidEnvironmentVariables, "CNI_COMMAND"},
		{"no container", Add, func(a *skel.CmdArgs) { a.ContainerID = "" }, types.ErrInvalidEnvironmentVariables,
			"CNI_CONTAINERID"},
		{"odd container", Del, func(a *skel.CmdArgs) { a.ContainerID = "../x" }, types.ErrInvalidEnvironmentVariables,
			"CNI_CONTAINERID"},
		{"no interface", Add, func(a *skel.CmdArgs) { a.IfName = "" }, types.ErrInvalidEnvironmentVariables,
			"CNI_IFNAME"},
		{"long interface", Add, func(a *skel.CmdArgs) { a.IfName = "eth0123456789abcd" },
			types.ErrInvalidEnvironmentVariables, "CNI_IFNAME"},
		{"slash in interface", Add, func(a *skel.CmdArgs) { a.IfName = "e/0" }, types.ErrInvalidEnvironmentVariables,
			"CNI_IFNAME"},
		{"no netns", Add, func(a *skel.CmdArgs) { a.Netns = "" }, types.ErrInvalidEnvironmentVariables, "CNI_NETNS"},
		{"relative netns", Check, func(a *skel.CmdArgs) { a.Netns = "netns/a" }, types.ErrInvalidEnvironmentVariables,
			"CNI_NETNS"},
		{"no args", Add, func(a *skel.CmdArgs) { a.Args = "" }, types.ErrInvalidEnvironmentVariables,
			"K8S_POD_NAMESPACE"},
		{"no pod name", Add, func(a *skel.CmdArgs) { a.Args = "K8S_POD_NAMESPACE=default" },
			types.ErrInvalidEnvironmentVariables, "K8S_POD_NAME"},
		{"odd pod name", Add, func(a *skel.CmdArgs) { a.Args = "K8S_POD_NAMESPACE=default;K8S_POD_NAME=a/b" },
			types.ErrInvalidEnvironmentVariables, "K8S_POD_NAME"},
		{"args that are no pairs", Add, func(a *skel.CmdArgs) { a.Args = "K8S_POD_NAME" },
			types.ErrInvalidEnvironmentVariables, "CNI_ARGS"},
		{"GC without a list", GC, config(`{"name":"egret"}`), types.ErrInvalidNetworkConfig,
			"cni.dev/valid-attachments"},
		{"CHECK without result", Check, config(`{"name":"egret"}`), types.ErrInvalidNetworkConfig, "prevResult"},
		{"no JSON", Add, config(`{`), types.ErrDecodingFailure, "not JSON"},
		{"socket is a number", Add, config(`{"socket":5}`), types.ErrInvalidNetworkConfig, `"socket"`},
		{"relative socket", Add, config(`{"socket":"cni.sock"}`), types.ErrInvalidNetworkConfig, `"socket"`},
		{"empty socket", Add, config(`{"socket":""}`), types.ErrInvalidNetworkConfig, `"socket"`},
		{"ipam", Add, config(`{"ipam":{"type":"host-local"}}`), types.ErrInvalidNetworkConfig, `"ipam"`},
		{"list is a string", GC, config(`{"cni.dev/valid-attachments":"x"}`), types.ErrInvalidNetworkConfig,
			"valid-attachments"},
	} {
		_, err := request(c.command, c.change)
		var e *types.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: error %v, want a CNI error", c.name, err)
			continue
		}
		if e.Code != c.code || !strings.Contains(e.Msg, c.says) {
			t.Errorf("%s: code %d %q, want code %d and %q", c.name, e.Code, e.Msg, c.code, c.says)
		}
	}
}

func TestAgentAway(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "cni.sock")
	for command, code := range map[string]uint{Add: types.ErrTryAgainLater, Del: types.ErrTryAgainLater,
		Status: types.ErrPluginNotAvailable} {
		_, err := Call(t.Context(), socket, &Request{Command: command})
		var e *types.Error
		if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Msg, socket) ||
			!strings.Contains(e.Msg, "egret-node") {
			t.Errorf("%s: %v, want code %d naming the socket and what to look at", command, err, code)
		}
	}
}

func TestAgentOfAnotherVersion(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "cni.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler()}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	_, err = Call(t.Context(), socket, &Request{Command: Add})
	var e *types.Error
	if !errors.As(err, &e) || e.Code != types.ErrTryAgainLater || !strings.Contains(e.Details, "same version") {
		t.Errorf("%v, want code 11 that asks for the versions", err)
	}
}

func TestConflist(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "net.d")
	for range 2 {
		if err := WriteConflist(dir, DefaultSocket); err != nil {
			t.Fatal(err)
		}
	}
	list, err := libcni.ConfListFromFile(filepath.Join(dir, ConflistName))
	if err != nil {
		t.Fatal(err)
	}
	if list.Name != "egret" || list.CNIVersion != "1.0.0" || len(list.Plugins) != 2 {
		t.Fatalf("conflist %s version %s with %d plugins", list.Name, list.CNIVersion, len(list.Plugins))
	}
	if list.Plugins[0].Network.Type != "egret-cni" || list.Plugins[1].Network.Type != "portmap" ||
		!list.Plugins[1].Network.Capabilities["portMappings"] {
		t.Errorf("plugins %s", list.Bytes)
	}
	var first Config
	if err := json.Unmarshal(list.Plugins[0].Bytes, &first); err != nil || first.Socket != DefaultSocket {
		t.Errorf("socket %q, %v", first.Socket, err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
}
