package removal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/egret-net/egret/internal/cni"
)

// removeFiles deletes Egret's files, OVN's, and those of an Open vSwitch that is Egret's and does not run. Folders may
// be mounted: they stay.
func removeFiles(o Options, ovsRuns bool) error {
	var errs []error
	for _, file := range []string{filepath.Join(o.CNIBinDir, cni.PluginName), o.CNISocket, o.AgentSocket,
		o.BootMarker} {
		if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	folders := []string{o.OVNState, o.ovnRunDir()}
	if o.OVSState != "" && !ovsRuns {
		folders = append(folders, o.OVSState, o.OVSRunDir)
	}
	for _, folder := range folders {
		errs = append(errs, emptyFolder(folder))
	}
	return errors.Join(errs...)
}

func emptyFolder(folder string) error {
	list, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, entry := range list {
		errs = append(errs, os.RemoveAll(filepath.Join(folder, entry.Name())))
	}
	return errors.Join(errs...)
}
