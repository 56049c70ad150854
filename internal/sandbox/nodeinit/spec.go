package nodeinit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Spec is everything a node's first process is told.
type Spec struct {
	Hostname string    `json:"hostname"`
	Lower    string    `json:"lower"`  // read-only root folder, shared by all nodes
	Disk     string    `json:"disk"`   // folder of the node's changes to it; on a file system that overlayfs takes
	BootID   string    `json:"bootID"` // as in /proc/sys/kernel/random/boot_id
	Binds    []Bind    `json:"binds"`
	Dirs     []string  `json:"dirs"` // made inside the node
	Units    []Unit    `json:"units"`
	Env      []string  `json:"env"`
	Sysctls  []Setting `json:"sysctls"` // of the node's network namespace
}

// Bind shows a folder of the machine inside the node.
type Bind struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// Setting is a file below /proc/sys and what to write to it. A file that does not exist is passed over.
type Setting struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

func (s Setting) writeSetting() error {
	f, err := os.OpenFile(filepath.Join("/proc/sys", s.Path), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(s.Value)
	return err
}

// Unit is a process that the node keeps running.
type Unit struct {
	Name    string   `json:"name"`
	Args    []string `json:"args"`              // Args[0] is an absolute path inside the node
	Needs   []string `json:"needs,omitempty"`   // paths that must exist before it is started
	Before  []Step   `json:"before,omitempty"`  // run to success before each start
	OneShot bool     `json:"oneShot,omitempty"` // run until it succeeds once, then done
	Unless  string   `json:"unless,omitempty"`  // one-shots only: done already if this path exists; made on success
	Nice    int      `json:"nice,omitempty"`    // -20 to 19, less is more urgent (setpriority(2)); 0: as node-init is
}

// Step is a command of a Unit's preparation.
type Step struct {
	Args   []string `json:"args"`
	Unless string   `json:"unless,omitempty"` // not run if this path exists
}

// ReadSpec reads a Spec from a JSON file.
func ReadSpec(file string) (Spec, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return Spec{}, err
	}
	var s Spec
	if err := json.Unmarshal(content, &s); err != nil {
		return Spec{}, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}
