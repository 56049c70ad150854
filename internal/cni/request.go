package cni

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/utils"
)

// Commands of the CNI specification that go to the agent.
const (
	Add    = "ADD"
	Check  = "CHECK"
	Del    = "DEL"
	GC     = "GC"
	Status = "STATUS"
)

// Request is one call, as it goes to the agent.
type Request struct {
	Command     string `json:"command"`
	ContainerID string `json:"containerID,omitempty"`
	// NetNS is the path of the pod's network namespace. DEL may come without.
	NetNS  string `json:"netns,omitempty"`
	IfName string `json:"ifName,omitempty"`
	Pod    Pod    `json:"pod,omitzero"`
	// Config is the network configuration as the runtime gave it.
	Config json.RawMessage `json:"config,omitempty"`
	// PrevResult is what ADD answered, for CHECK.
	PrevResult json.RawMessage `json:"prevResult,omitempty"`
	// ValidAttachments is for GC: all others are removed. Null is not the same as none.
	ValidAttachments *[]types.GCAttachment `json:"validAttachments,omitempty"`
}

// Pod says whose interface it is, from CNI_ARGS.
type Pod struct {
	Namespace string `json:"namespace,omitempty"` // K8S_POD_NAMESPACE
	Name      string `json:"name,omitempty"`      // K8S_POD_NAME
	UID       string `json:"uid,omitempty"`       // K8S_POD_UID, which older runtimes leave out
	Sandbox   string `json:"sandbox,omitempty"`   // K8S_POD_INFRA_CONTAINER_ID
}

// args are the keys of CNI_ARGS; the library finds them by these field names.
type args struct {
	types.CommonArgs
	K8S_POD_NAMESPACE          types.UnmarshallableString //nolint:revive // the key's name
	K8S_POD_NAME               types.UnmarshallableString //nolint:revive // the key's name
	K8S_POD_UID                types.UnmarshallableString //nolint:revive // the key's name
	K8S_POD_INFRA_CONTAINER_ID types.UnmarshallableString //nolint:revive // the key's name
}

// NewRequest makes a request of a runtime's call, not yet validated.
func NewRequest(command string, a *skel.CmdArgs, c *Config) (*Request, error) {
	pod, err := parsePod(a.Args)
	if err != nil {
		return nil, err
	}
	return &Request{
		Command: command, ContainerID: a.ContainerID, NetNS: a.Netns, IfName: a.IfName, Pod: pod,
		Config: a.StdinData, PrevResult: c.PrevResult, ValidAttachments: c.ValidAttachments,
	}, nil
}

func parsePod(text string) (Pod, error) {
	// Runtimes add keys of their own; those are never an error here.
	a := args{}
	known := []string{"IgnoreUnknown=1"}
	for pair := range strings.SplitSeq(text, ";") {
		if pair != "" {
			known = append(known, pair)
		}
	}
	if err := types.LoadArgs(strings.Join(known, ";"), &a); err != nil {
		return Pod{}, envError("CNI_ARGS is %q, want KEY=VALUE;KEY=VALUE: %v", text, err)
	}
	return Pod{
		Namespace: string(a.K8S_POD_NAMESPACE), Name: string(a.K8S_POD_NAME),
		UID: string(a.K8S_POD_UID), Sandbox: string(a.K8S_POD_INFRA_CONTAINER_ID),
	}, nil
}

// Validate checks all that the command needs. The error is a *types.Error whose message names the variable or field.
func (r *Request) Validate() error {
	if err := r.validateText(); err != nil {
		return err
	}
	switch r.Command {
	case Status:
		return nil
	case GC:
		if r.ValidAttachments == nil {
			return configError("cni.dev/valid-attachments",
				"GC without a list of valid attachments would remove every pod's interface; the runtime must give "+
					"the list")
		}
		return nil
	case Del:
		return r.validateAttachment()
	case Add, Check:
		if err := r.validateAttachment(); err != nil {
			return err
		}
		if err := r.validatePod(); err != nil {
			return err
		}
		if r.Command == Check && len(r.PrevResult) == 0 {
			return configError("prevResult", "CHECK needs the result of ADD; the runtime must give it")
		}
		return nil
	}
	return envError("CNI_COMMAND is %q, want ADD, CHECK, DEL, GC or STATUS", r.Command)
}

// validateText keeps out what JSON cannot carry: the agent would read another name than the runtime gave.
func (r *Request) validateText() error {
	for key, text := range map[string]string{
		"CNI_CONTAINERID": r.ContainerID, "CNI_NETNS": r.NetNS, "CNI_IFNAME": r.IfName,
		"CNI_ARGS": r.Pod.Namespace + r.Pod.Name + r.Pod.UID + r.Pod.Sandbox,
	} {
		if !utf8.ValidString(text) {
			return envError("%s is %q, want UTF-8", key, text)
		}
	}
	return nil
}

func (r *Request) validateAttachment() error {
	if err := utils.ValidateContainerID(r.ContainerID); err != nil {
		return envError("CNI_CONTAINERID is %q: %s", r.ContainerID, err.Msg)
	}
	if err := utils.ValidateInterfaceName(r.IfName); err != nil {
		return envError("CNI_IFNAME is %q: %s", r.IfName, err.Msg)
	}
	if r.NetNS != "" && !filepath.IsAbs(r.NetNS) {
		return envError("CNI_NETNS is %q, want an absolute path", r.NetNS)
	}
	if r.NetNS == "" && r.Command != Del {
		return envError("CNI_NETNS is empty, want the path of the pod's network namespace")
	}
	return nil
}

func (r *Request) validatePod() error {
	if err := validateName("K8S_POD_NAMESPACE", r.Pod.Namespace); err != nil {
		return err
	}
	return validateName("K8S_POD_NAME", r.Pod.Name)
}

// validateName keeps out what cannot be the name of a Kubernetes object (RFC 1123 subdomain).
func validateName(key, name string) error {
	odd := strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.'
	})
	if name == "" || len(name) > 253 || odd {
		return envError("%s in CNI_ARGS is %q, want a Kubernetes object's name; is this runtime a Kubernetes node's?",
			key, name)
	}
	return nil
}

func envError(format string, a ...any) error {
	return types.NewError(types.ErrInvalidEnvironmentVariables, fmt.Sprintf(format, a...), "")
}
