package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
)

// Down removes the sandbox of this name and all it may have left: processes, namespaces, mounts, control groups, links,
// files. No error if the sandbox does not exist. Of the options, Name and StateDir are read. It waits for other
// commands that work on the sandbox.
func Down(o Options) error {
	if !namePattern.MatchString(o.Name) {
		return o.Validate()
	}
	if os.Geteuid() != 0 {
		return errors.New("removing a sandbox needs root: run this command as root")
	}
	l := newLayout(o)
	unlock, err := lockState(context.Background(), l, false)
	if err != nil {
		return err
	}
	defer unlock()
	return removeSandbox(l)
}

func removeSandbox(l layout) error {
	if err := clearAway(l); err != nil {
		return err
	}
	return removeState(l)
}

// clearAway ends and removes all but the state folder. It goes by what is there, not by what the state says, for the
// state may be lost or from other options.
func clearAway(l layout) error {
	namespaces, err := netnsOf(l.options.Name)
	if err != nil {
		return err
	}
	if err := endAll(l, namespaces); err != nil {
		return err
	}
	for _, name := range namespaces {
		if err := deleteNetns(name); err != nil {
			return err
		}
	}
	groups, err := cgroupsOf(cgroupRoot, l.options.Name)
	if err != nil {
		return err
	}
	for _, name := range groups {
		if err := removeCgroups(cgroupRoot, name); err != nil {
			return err
		}
	}
	return nil
}

// netnsOf lists the network namespaces that a sandbox of this name can have.
func netnsOf(name string) ([]string, error) {
	return namesIn(netnsDir, netnsPattern(name))
}

func netnsPattern(name string) *regexp.Regexp {
	return regexp.MustCompile(`^` + regexp.QuoteMeta(name) + `-(cp|fabric|n\d+|ext\d+)$`)
}

// cgroupsOf lists the control groups of nodes that a sandbox of this name can have.
func cgroupsOf(root, name string) ([]string, error) {
	hierarchies, err := cgroupHierarchies(root)
	if err != nil {
		return nil, err
	}
	pattern := regexp.MustCompile(`^` + regexp.QuoteMeta(name) + `-n\d+$`)
	seen := map[string]bool{}
	var all []string
	for _, h := range hierarchies {
		names, err := namesIn(h, pattern)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if !seen[n] {
				seen[n], all = true, append(all, n)
			}
		}
	}
	return all, nil
}

func namesIn(dir string, pattern *regexp.Regexp) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("look for what is left: %w", err)
	}
	var names []string
	for _, e := range entries {
		if pattern.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
