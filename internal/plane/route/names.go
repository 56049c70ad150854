package route

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// namesEtc and namesUsr are where iproute2 6 looks for names of routing tables, from a host's root: the administrator's
// files, and the distribution's, of which there is one folder.
const namesEtc = "etc/iproute2"

var namesUsr = []string{"usr/share/iproute2", "usr/lib/iproute2"}

// TableNames are the names that the files below a host's root give to routing tables, as iproute2 6 reads them:
// rt_tables of the administrator, or else of the distribution; and all rt_tables.d/*.conf, of which the administrator's
// stand in for the distribution's of the same name. The last reading decides. A file that cannot be read names none.
func TableNames(root string) map[string]int {
	names := map[string]int{}
	etc := filepath.Join(root, namesEtc)
	table := filepath.Join(etc, "rt_tables")
	further := map[string]string{} // by name without its folder
	for _, folder := range namesUsr {
		usr := filepath.Join(root, folder)
		if _, err := os.Stat(filepath.Join(usr, "rt_tables")); err == nil && fileMissing(table) {
			table = filepath.Join(usr, "rt_tables")
		}
		addConfigs(further, usr)
	}
	administrators := map[string]string{}
	addConfigs(administrators, etc)
	files := []string{table}
	for _, name := range slices.Sorted(maps.Keys(further)) {
		if administrators[name] == "" {
			files = append(files, further[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(administrators)) {
		files = append(files, administrators[name])
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			readTableNames(string(text), names)
		}
	}
	return names
}

func fileMissing(file string) bool {
	_, err := os.Stat(file)
	return errors.Is(err, fs.ErrNotExist)
}

// addConfigs adds the files of rt_tables.d.
func addConfigs(to map[string]string, folder string) {
	files, _ := filepath.Glob(filepath.Join(folder, "rt_tables.d", "[^.]*.conf")) // its only error is of the pattern
	for _, f := range files {
		to[filepath.Base(f)] = f
	}
}

// readTableNames reads lines "NUMBER NAME", decimal or 0x and hexadecimal, and whatever follows. A line that begins
// with # is a comment; one that cannot be read names none.
func readTableNames(text string, names map[string]int) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || strings.HasPrefix(words[0], "#") {
			continue
		}
		number, base := words[0], 10
		if hex, is := strings.CutPrefix(number, "0x"); is {
			number, base = hex, 16
		}
		if n, err := strconv.ParseUint(number, base, 32); err == nil && n > 0 {
			names[words[1]] = int(n)
		}
	}
}
