package route

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// setting is the value that a sysctl had.
type setting struct{ key, value string }

// formerValues is a file with the values that sysctls had before a plane first changed them: no kernel tells them
// afterwards. It lies in a folder that a boot empties, as a boot gives the settings other values. Its lines are those
// of sysctl.conf(5). Without a name nothing is kept.
type formerValues struct{ file string }

// keepValues adds the values of those settings that the file does not have yet. It is called before they change.
func (f formerValues) keepValues(now ...setting) error {
	if f.file == "" {
		return nil
	}
	kept, err := f.readValues()
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, s := range now {
		if !slices.ContainsFunc(kept, func(k setting) bool { return k.key == s.key }) {
			fmt.Fprintf(&lines, "%s = %s\n", s.key, s.value)
		}
	}
	if lines.Len() == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(f.file), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(f.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(lines.String())
	return errors.Join(err, file.Close())
}

// readValues returns what is kept, in the order in which it was changed.
func (f formerValues) readValues() (kept []setting, err error) {
	text, err := os.ReadFile(f.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if key, value, is := strings.Cut(strings.TrimSuffix(line, "\n"), " = "); is {
			kept = append(kept, setting{key, value})
		}
	}
	return kept, nil
}

// RestoreSysctls gives settings the values that they had before an agent first changed them in this boot, and then
// forgets these. Settings of links that are gone are passed over. Nothing may grow afterwards.
func (p *Plane) RestoreSysctls() error {
	kept, err := p.former.readValues()
	if err != nil {
		return err
	}
	for _, s := range kept {
		if err := p.restoreSysctl(s); err != nil {
			return fmt.Errorf("give %s back its value: %w", sysctlRow(plan.Sysctl{Key: s.key}, s.value), err)
		}
	}
	if err := os.Remove(p.former.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (p *Plane) restoreSysctl(s setting) error {
	if err := checkSysctl(s.key, s.value); err != nil {
		return err
	}
	err := p.stack.setSysctl(s.key, s.value)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
