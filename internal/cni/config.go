package cni

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/containernetworking/cni/pkg/types"
)

// DefaultSocket is where the agent listens when the configuration does not say.
const DefaultSocket = "/run/egret/cni.sock"

// Config is the plugin's part of the network configuration.
type Config struct {
	CNIVersion       string                `json:"cniVersion"`
	Socket           string                `json:"socket"`
	IPAM             json.RawMessage       `json:"ipam"`
	PrevResult       json.RawMessage       `json:"prevResult"`
	ValidAttachments *[]types.GCAttachment `json:"cni.dev/valid-attachments"`
}

// ParseConfig reads the network configuration. The error is a *types.Error of code 7 that names the field.
func ParseConfig(text []byte) (*Config, error) {
	c := &Config{Socket: DefaultSocket}
	if err := json.Unmarshal(text, c); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return nil, configError(wrong.Field, fmt.Sprintf("want a %s, have a %s", wrong.Type, wrong.Value))
		}
		return nil, types.NewError(types.ErrDecodingFailure, "the network configuration is not JSON", err.Error())
	}
	if !filepath.IsAbs(c.Socket) {
		return nil, configError("socket",
			fmt.Sprintf("is %q, want the absolute path of the agent's socket (default %s)", c.Socket, DefaultSocket))
	}
	if ipam := string(c.IPAM); ipam != "" && ipam != "null" && ipam != "{}" {
		return nil, configError("ipam", "must be absent: the agent gives addresses from the node's subnets itself")
	}
	return c, nil
}

func configError(field, what string) error {
	return types.NewError(types.ErrInvalidNetworkConfig,
		fmt.Sprintf("network configuration, field %q: %s", field, what), "")
}
