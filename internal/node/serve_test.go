package node

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCNIAtLast: a folder that cannot be written when the agent starts, as on a full disk, keeps pods from being
// attached for as long as that lasts.
func TestCNIAtLast(t *testing.T) {
	dir := t.TempDir()
	o := Options{CNISocket: filepath.Join(dir, "socket", "s"), CNIConfDir: filepath.Join(dir, "conf")}
	for _, in := range []string{"socket", "conf"} {
		if err := os.WriteFile(filepath.Join(dir, in), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	failures := 0
	mend := func(in string) func(error) {
		return func(error) {
			if failures++; failures%2 == 0 {
				if err := os.Remove(filepath.Join(dir, in)); err != nil {
					t.Error(err)
				}
			}
		}
	}
	l, err := listenForCNI(t.Context(), o.CNISocket, mend("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := writeConflist(t.Context(), o, mend("conf")); err != nil {
		t.Fatal(err)
	}
	if written, err := os.ReadDir(o.CNIConfDir); failures != 4 || len(written) != 1 || err != nil {
		t.Errorf("%d failures, %v, %v", failures, written, err)
	}
}
