package route

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"

	"github.com/egret-net/egret/internal/plane"
)

// WatchNames signals whenever a file that TableNames reads below a host's root may have changed. Signals that nobody
// has taken yet are one. The channel is closed when ctx ends.
func WatchNames(ctx context.Context, root string) (<-chan struct{}, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch files with names of routing tables: %w", err)
	}
	addFolders(w, root)
	changed := make(chan struct{}, 1)
	go func() {
		defer close(changed)
		defer w.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-w.Events:
				if !strings.Contains(e.Name, filepath.Base(namesEtc)) {
					continue // of the folders above
				}
				addFolders(w, root) // it may be one of them
			case _, open := <-w.Errors: // events were lost
				if !open {
					return
				}
				addFolders(w, root)
			}
			plane.SignalOnce(changed)
		}
	}()
	return changed, nil
}

// addFolders watches the folders that are there, and those above them, in which they may come.
func addFolders(w *fsnotify.Watcher, root string) {
	for _, folder := range append([]string{namesEtc}, namesUsr...) {
		at := filepath.Join(root, folder)
		for _, f := range []string{filepath.Dir(at), at, filepath.Join(at, "rt_tables.d")} {
			_ = w.Add(f) // the folder above tells when a missing one appears
		}
	}
}
