package route

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// write makes files below a root, with their folders.
func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTableNames: files are found and read as iproute2 6 does.
func TestTableNames(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  map[string]int
	}{
		"none": {nil, map[string]int{}},
		"lines": {map[string]string{"etc/iproute2/rt_tables": "# reserved\n255\tlocal\n 0x64 blue # hexadecimal\n\n" +
			"7\n8 eight of many words\nnumber nine\n0 unspec\n010 ten\n  # 11 eleven\n12 twelve#\n4294967296 big\n" +
			"-1 less\n"},
			map[string]int{"local": 255, "blue": 100, "eight": 8, "ten": 10, "twelve#": 12}},
		"the distribution's": {map[string]string{"usr/share/iproute2/rt_tables": "255 local\n",
			"usr/share/iproute2/rt_tables.d/a.conf": "100 blue\n"}, map[string]int{"local": 255, "blue": 100}},
		"that of 6.5": {map[string]string{"usr/lib/iproute2/rt_tables": "255 local\n"}, map[string]int{"local": 255}},
		"the administrator's in its place": {map[string]string{"usr/share/iproute2/rt_tables": "255 local\n9 nine\n",
			"etc/iproute2/rt_tables": "255 local\n10 ten\n"}, map[string]int{"local": 255, "ten": 10}},
		"further files": {map[string]string{"etc/iproute2/rt_tables": "100 blue\n",
			"usr/share/iproute2/rt_tables.d/a.conf": "1 a\n", "usr/share/iproute2/rt_tables.d/b.conf": "2 b\n",
			"etc/iproute2/rt_tables.d/b.conf": "3 c\n101 blue\n", "etc/iproute2/rt_tables.d/.h.conf": "4 hidden\n",
			"etc/iproute2/rt_tables.d/README": "5 five\n"}, map[string]int{"blue": 101, "a": 1, "c": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, root, c.files)
			if have := TableNames(root); !maps.Equal(have, c.want) {
				t.Errorf("have %v, want %v", have, c.want)
			}
		})
	}
}

// TestWatchNames: a file that comes, changes and goes is told of, also in a folder that was not there; what else
// happens in /etc is not.
func TestWatchNames(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"etc/passwd": ""})
	changed, err := WatchNames(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, map[string]string{"etc/passwd": "x"})
	select {
	case <-changed:
		t.Error("another file of /etc is told of")
	case <-time.After(100 * time.Millisecond):
	}
	names := func() map[string]int { return TableNames(root) }
	write(t, root, map[string]string{"etc/iproute2/rt_tables.d/a.conf": "100 blue\n"})
	told(t, changed, names, map[string]int{"blue": 100})
	write(t, root, map[string]string{"etc/iproute2/rt_tables.d/a.conf": "101 blue\n"})
	told(t, changed, names, map[string]int{"blue": 101})
	if err := os.RemoveAll(filepath.Join(root, "etc/iproute2")); err != nil {
		t.Fatal(err)
	}
	told(t, changed, names, map[string]int{})
	write(t, root, map[string]string{"etc/iproute2/rt_tables": "102 blue\n"})
	told(t, changed, names, map[string]int{"blue": 102})
}

// told waits for signals until what is read after one is as wanted.
func told(t *testing.T, changed <-chan struct{}, names func() map[string]int, want map[string]int) {
	t.Helper()
	for limit := time.After(time.Minute); ; {
		select {
		case <-changed:
			if maps.Equal(names(), want) {
				return
			}
		case <-limit:
			t.Fatalf("not told that the names are %v; they are %v", want, names())
		}
	}
}
