package removal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/egret-net/egret/internal/cni"
)

// folders are those that are emptied, with those of an Open vSwitch that is Egret's and does not run.
func folders(o Options, ovsRuns bool) []string {
	all := []string{o.OVNState, o.ovnRunDir()}
	if o.OVSState != "" && !ovsRuns {
		all = append(all, o.OVSState, o.OVSRunDir)
	}
	return all
}

// checkFolders refuses folders that no option can mean: the databases' socket may lie in /, or be none.
func checkFolders(o Options) error {
	for _, folder := range folders(o, false) {
		if !filepath.IsAbs(folder) || filepath.Clean(folder) == "/" {
			return fmt.Errorf("%q would be emptied: give folders of OVN and Open vSwitch (--ovn-state, --ovs-state, "+
				"--ovs-rundir), and --ovn-nb as unix:/FOLDER/SOCKET", folder)
		}
	}
	return nil
}

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
	for _, folder := range folders(o, ovsRuns) {
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
