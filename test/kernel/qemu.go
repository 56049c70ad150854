package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/egret-net/egret/test/kernel/boot"
)

// boot runs the machine to its end. Its first serial line is the kernel's, kept in a file and shown if the machine does
// not come to an end of its own; the second is the tests'.
func (m machine) boot(ctx context.Context) (code int, err error) {
	program, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		return 1, errors.New("qemu-system-x86_64 is missing: apt-get install qemu-system-x86")
	}
	cmd := exec.CommandContext(ctx, "nice", append([]string{"-n", "5", program}, m.arguments()...)...)
	out := &lines{w: m.out}
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	err = cmd.Run()
	if ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	status, missing := os.ReadFile(filepath.Join(m.share(), boot.StatusFile))
	if err != nil || missing != nil {
		return 1, fmt.Errorf("the machine did not come to its end: %w\nits last words:\n%s", errors.Join(err, missing),
			m.lastWords())
	}
	return strconv.Atoi(strings.TrimSpace(string(status)))
}

func (m machine) arguments() []string {
	shared := func(tag, path, more string) []string {
		return []string{"-fsdev", "local,id=" + tag + ",path=" + path + ",security_model=none" + more, "-device",
			"virtio-9p-pci,fsdev=" + tag + ",mount_tag=" + tag}
	}
	args := []string{
		"-machine", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", "2048",
		// The machine's clock counts what it executes, 2 ns an instruction, while it is not idle: on a busy host it is
		// slow and does not know, and no timeout of the programs in it passes for that.
		"-icount", "shift=1",
		"-nodefaults", "-no-user-config", "-display", "none", "-nic", "none", "-no-reboot",
		"-kernel", m.kernel.image, "-initrd", m.path("initramfs"),
		"-append", "console=ttyS0 quiet panic=-1 mitigations=off",
		"-serial", "file:" + m.path("console"), "-serial", "stdio",
	}
	args = append(args, shared(boot.CacheTag, m.cache, ",readonly=on")...)
	return append(args, shared(boot.ShareTag, m.share(), "")...)
}

func (m machine) lastWords() string {
	const enough = 8 << 10
	text, _ := os.ReadFile(m.path("console")) // nothing to show then
	return string(text[max(0, len(text)-enough):])
}

// lines takes the carriage returns of a serial line out.
type lines struct {
	w interface{ Write([]byte) (int, error) }
}

func (l *lines) Write(p []byte) (int, error) {
	_, err := l.w.Write(bytes.ReplaceAll(p, []byte("\r"), nil))
	return len(p), err
}
