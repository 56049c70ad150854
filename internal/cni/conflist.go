package cni

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ConflistName is the file in the runtime's configuration folder (/etc/cni/net.d). The runtime takes the first by name.
const ConflistName = "10-egret.conflist"

// PluginName is the file of the plugin in the runtime's folder of plugins (/opt/cni/bin).
const PluginName = "egret-cni"

// Network is the network's name in the conflist.
const Network = "egret"

// Conflist is the network configuration for the runtime: egret-cni, then portmap for pods' hostPorts. Its version is
// 1.0.0 because the CNI library of containerd 1.6 and 1.7 refuses results of 1.1.0.
func Conflist(socket string) []byte {
	text, err := json.MarshalIndent(map[string]any{
		"cniVersion": "1.0.0",
		"name":       Network,
		"plugins": []map[string]any{
			{"type": PluginName, "socket": socket},
			{"type": "portmap", "capabilities": map[string]bool{"portMappings": true}, "snat": true},
		},
	}, "", "  ")
	if err != nil {
		panic(err) // constants and one string always encode
	}
	return append(text, '\n')
}

// WriteConflist puts the conflist into dir. The runtime, which watches the folder, sees all of it or nothing. The agent
// writes it when it can serve ADD: until then the kubelet keeps the node NotReady.
func WriteConflist(dir, socket string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the runtime's CNI folder: %w", err)
	}
	// The runtime reads only names that end in .conf, .conflist and .json.
	f, err := os.CreateTemp(dir, "."+ConflistName+".*")
	if err != nil {
		return fmt.Errorf("write the CNI configuration: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(Conflist(socket))
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, ConflistName))
	}
	if err != nil {
		return fmt.Errorf("write the CNI configuration: %w", err)
	}
	return nil
}

// RemoveConflist takes the conflist out of dir, so that the runtime starts no pod with it.
func RemoveConflist(dir string) error {
	err := os.Remove(filepath.Join(dir, ConflistName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the CNI configuration: %w", err)
	}
	return nil
}
