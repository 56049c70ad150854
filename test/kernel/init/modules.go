package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// loadAll loads the modules of a folder in the order of their names.
func loadAll(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := load(filepath.Join(dir, f.Name())); err != nil {
			return fmt.Errorf("load module %s: %w", f.Name(), err)
		}
	}
	return nil
}

func load(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.FinitModule(int(f.Fd()), "", 0)
}
