package route

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// tableFiles are where iproute2 looks for names of routing tables (ip-route(8)); what a later one says stands.
var tableFiles = []string{"/usr/share/iproute2/rt_tables", "/usr/share/iproute2/rt_tables.d/*.conf",
	"/etc/iproute2/rt_tables", "/etc/iproute2/rt_tables.d/*.conf"}

// tableNames are the names that files give to routing tables. One that cannot be read names none.
func tableNames(patterns []string) map[string]int {
	names := map[string]int{}
	for _, pattern := range patterns {
		files, _ := filepath.Glob(pattern) // its only error is of the pattern
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			readTableNames(string(text), names)
		}
	}
	return names
}

// readTableNames reads lines "NUMBER NAME", with comments behind a #.
func readTableNames(text string, names map[string]int) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) != 2 {
			continue
		}
		if n, err := strconv.ParseUint(words[0], 0, 32); err == nil && n > 0 {
			names[words[1]] = int(n)
		}
	}
}
