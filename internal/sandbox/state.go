package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// state is sandbox.json, the part that cannot be read back from the kernel.
type state struct {
	Options  Options `json:"options"`
	BinDir   string  `json:"binDir"`
	CacheDir string  `json:"cacheDir"`
	APIPort  int     `json:"apiPort"`  // of the listener on 127.0.0.1; 0 before the control plane's first start
	Datapath string  `json:"datapath"` // of OVS: netdev or system
	Complete bool    `json:"complete"` // up came to its end once
}

// errNone says that there is no sandbox of this name.
var errNone = errors.New("no sandbox of this name: start one with egret-sandbox up")

func readState(l layout) (state, error) {
	content, err := os.ReadFile(l.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		return state{}, fmt.Errorf("%s: %w", l.options.Name, errNone)
	}
	if err != nil {
		return state{}, err
	}
	var s state
	if err := json.Unmarshal(content, &s); err != nil {
		return state{}, fmt.Errorf("%s: %w", l.stateFile(), err)
	}
	s.Options.StateDir, s.Options.CacheDir, s.Options.BinDir = l.options.StateDir, s.CacheDir, s.BinDir
	return s, nil
}

func (s state) writeState(l layout) error {
	s.BinDir, s.CacheDir = s.Options.BinDir, s.Options.CacheDir
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(l.stateFile(), append(content, '\n'), 0o644)
}

// lockState makes the state folder if create is set, and keeps other commands from changing the sandbox until unlock.
// It waits for them until ctx ends. Without create, a sandbox that does not exist needs no lock: unlock then does
// nothing.
func lockState(ctx context.Context, l layout, create bool) (unlock func(), err error) {
	for {
		if create {
			if err := os.MkdirAll(l.stateDir(), 0o755); err != nil {
				return nil, fmt.Errorf("make the state folder: %w", err)
			}
		}
		f, err := os.Open(l.stateDir())
		if errors.Is(err, os.ErrNotExist) && !create {
			return func() {}, nil
		}
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		// A down that held the lock has removed the folder: then this would be a lock on nothing.
		if err == nil && sameFile(f, l.stateDir()) {
			return func() { f.Close() }, nil
		}
		f.Close()
		if err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", l.stateDir(), err)
		}
		if err := sleepUnlessDone(ctx, pollInterval); err != nil {
			return nil, fmt.Errorf("another egret-sandbox command works on %s: %w", l.options.Name, err)
		}
	}
}

func sameFile(f *os.File, path string) bool {
	have, err := f.Stat()
	if err != nil {
		return false
	}
	want, err := os.Stat(path)
	return err == nil && os.SameFile(have, want)
}

// emptyState removes all in the state folder, but not the folder, which holds the lock.
func emptyState(l layout) error {
	entries, err := os.ReadDir(l.stateDir())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(l.stateDir(), e.Name())); err != nil {
			return fmt.Errorf("remove what a killed sandbox left: %w", err)
		}
	}
	return nil
}

// removeState removes the state folder, and those above it that have become empty.
func removeState(l layout) error {
	if err := os.RemoveAll(l.stateDir()); err != nil {
		return fmt.Errorf("remove the state folder: %w", err)
	}
	for _, dir := range []string{l.options.StateDir, filepath.Dir(l.options.StateDir)} {
		_ = os.Remove(dir) // fails where other sandboxes or programs have something
	}
	return nil
}
