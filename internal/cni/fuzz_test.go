package cni

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/google/go-cmp/cmp"
)

// Names as they get into paths, OVN's row names and OVS' commands.
var (
	containerSyntax = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)
	objectSyntax    = regexp.MustCompile(`^[a-z0-9.-]{1,253}$`)
	linkSyntax      = regexp.MustCompile(`^[^/:\s]{1,15}$`)
)

// FuzzRequest: whatever a runtime says is refused with an error of the specification, or is a request that the agent
// reads as it was meant.
func FuzzRequest(f *testing.F) {
	const config = `{"cniVersion":"1.1.0","name":"egret","prevResult":{},"cni.dev/valid-attachments":[]}`
	for _, command := range []string{Add, Check, Del, GC, Status, "MOVE"} {
		f.Add(command, "c1", "/run/netns/a", "eth0", goodArgs, []byte(config))
	}
	f.Add(Add, "../c", "netns", "e/0", "K8S_POD_NAME=a;;K8S_POD_NAME", []byte(`{"socket":"x","ipam":{}}`))
	f.Add(Del, "c1", "", "eth0", "",
		[]byte(`{"socket":"/a","prevResult":null,"cni.dev/valid-attachments":[{"containerID":"x","ifname":"y"}]}`))
	f.Fuzz(func(t *testing.T, command, container, netns, link, args string, stdin []byte) {
		r, err := request(command, func(a *skel.CmdArgs) {
			a.ContainerID, a.Netns, a.IfName, a.Args, a.StdinData = container, netns, link, args, stdin
		})
		if err != nil {
			refused(t, err)
			return
		}
		sound(t, r)
		arrives(t, r)
	})
}

func refused(t *testing.T, err error) {
	t.Helper()
	var e *types.Error
	codes := map[uint]bool{types.ErrInvalidEnvironmentVariables: true, types.ErrDecodingFailure: true,
		types.ErrInvalidNetworkConfig: true}
	if !errors.As(err, &e) || !codes[e.Code] {
		t.Errorf("refused with %v, want an error of code 4, 6 or 7", err)
	}
}

// sound says that what a command goes by cannot be taken for anything else.
func sound(t *testing.T, r *Request) {
	t.Helper()
	attaches := r.Command == Add || r.Command == Check
	if (attaches || r.Command == Del) &&
		(!containerSyntax.MatchString(r.ContainerID) || !linkSyntax.MatchString(r.IfName)) {
		t.Errorf("%s of container %q, interface %q", r.Command, r.ContainerID, r.IfName)
	}
	if attaches && (!objectSyntax.MatchString(r.Pod.Namespace) || !objectSyntax.MatchString(r.Pod.Name) ||
		!filepath.IsAbs(r.NetNS)) {
		t.Errorf("%s of pod %+v at %q", r.Command, r.Pod, r.NetNS)
	}
	if r.Command == GC && r.ValidAttachments == nil {
		t.Error("GC of everything")
	}
}

// arrives sends the request as Call does and reads it as the agent does.
func arrives(t *testing.T, r *Request) {
	t.Helper()
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatalf("cannot be sent: %v", err)
	}
	have := &Request{}
	if err := json.Unmarshal(body, have); err != nil || have.Validate() != nil {
		t.Fatalf("the agent does not take %s: %v, %v", body, err, have.Validate())
	}
	// JSON has its own spelling: what counts is what it says.
	have.Config, have.PrevResult = r.Config, r.PrevResult
	if diff := cmp.Diff(r, have); diff != "" {
		t.Errorf("arrives as another request:\n%s", diff)
	}
}
