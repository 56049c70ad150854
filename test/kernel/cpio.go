package main

import (
	"bytes"
	"fmt"
	"io"
)

// archive writes the cpio format that the kernel unpacks its first root folder from ("newc": the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst).
type archive struct {
	w      io.Writer
	inode  int
	offset int
	err    error
}

const (
	modeFolder  = 0o040755
	modeProgram = 0o100755
)

func (a *archive) folder(name string)               { a.entry(name, modeFolder, nil) }
func (a *archive) file(name string, content []byte) { a.entry(name, modeProgram, content) }

// close ends the archive and says what went wrong on the way.
func (a *archive) close() error {
	a.entry("TRAILER!!!", 0, nil)
	return a.err
}

func (a *archive) entry(name string, mode int, content []byte) {
	a.inode++
	fmt.Fprintf(a, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		a.inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name)+1, 0)
	fmt.Fprintf(a, "%s\x00", name)
	a.pad()
	_, _ = a.Write(content)
	a.pad()
}

// pad fills up to the next multiple of four bytes.
func (a *archive) pad() { _, _ = a.Write(bytes.Repeat([]byte{0}, -a.offset&3)) }

func (a *archive) Write(p []byte) (int, error) {
	if a.err == nil {
		_, a.err = a.w.Write(p)
	}
	a.offset += len(p)
	return len(p), a.err
}
