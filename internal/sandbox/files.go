package sandbox

import (
	"os"
	"path/filepath"
)

// writeFile writes a file and the folders above it.
func writeFile(file, content string, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(content), mode)
}

// replaceFile writes a file so that readers see the old content or the new one, never a part.
func replaceFile(file string, content []byte, mode os.FileMode) error {
	temporary := file + ".new"
	if err := writeFile(temporary, string(content), mode); err != nil {
		return err
	}
	return os.Rename(temporary, file)
}
