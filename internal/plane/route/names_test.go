package route

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// TestTableNames: files are read as iproute2 reads them, and a later one decides.
func TestTableNames(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rt_tables":  "# reserved\n255\tlocal\n0x64 blue # hexadecimal\n\n7\nnumber nine\n0 unspec\n",
		"d-one.conf": "200 red\n101 blue\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have := tableNames([]string{dir + "/none", dir + "/rt_tables", dir + "/*.conf"})
	if want := (map[string]int{"local": 255, "blue": 101, "red": 200}); !maps.Equal(have, want) {
		t.Errorf("have %v, want %v", have, want)
	}
}
