package rootfs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// progressEvery spaces the progress lines: debootstrap prints several hundred.
const progressEvery = 5 * time.Second

// runDebootstrap fills dir. It runs in a mount namespace of its own, so that its /proc and /sys inside dir are gone
// with it even if it is killed; dir can then always be removed.
func runDebootstrap(ctx context.Context, dir string, src source, progress func(string)) error {
	path, err := exec.LookPath("debootstrap")
	if err != nil {
		return errors.New("debootstrap is missing: run make deps, or apt-get install debootstrap")
	}
	cmd := exec.CommandContext(ctx, path, debootstrapArgs(dir, src)...)
	cmd.Env = debootstrapEnv(src)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	tail := make(chan []string, 1)
	go func() { tail <- followOutput(out, progress, time.Now) }()
	progress("debootstrap " + suite + " from the machine's Debian mirror")
	err = cmd.Run()
	in.Close()
	last := <-tail
	if ctx.Err() != nil {
		return fmt.Errorf("building the root folder was interrupted: %w", context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("debootstrap of %s from %s failed (another archive: EGRET_DEBIAN_MIRROR; fresh keys: "+
			"apt-get install debian-archive-keyring): %w\n%s",
			suite, src.mirror, err, strings.Join(last, "\n"))
	}
	return nil
}

func debootstrapArgs(dir string, src source) []string {
	return []string{"--variant=" + variant, "--include=" + strings.Join(Packages(), ","), suite, dir, src.mirror}
}

func debootstrapEnv(src source) []string {
	env := append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	if src.httpProxy != "" && os.Getenv("http_proxy") == "" {
		env = append(env, "http_proxy="+src.httpProxy)
	}
	return env
}

// followOutput reads debootstrap's output to its end, reports a line from time to time, and returns the last ones.
func followOutput(r io.Reader, progress func(string), now func() time.Time) []string {
	const keep = 15
	var tail []string
	next := now().Add(progressEvery)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		tail = append(tail, line)
		if len(tail) > keep {
			tail = tail[1:]
		}
		if info, ok := strings.CutPrefix(line, "I: "); ok && !now().Before(next) {
			progress(strings.ToLower(info))
			next = now().Add(progressEvery)
		}
	}
	_, _ = io.Copy(io.Discard, r) // a line too long for the scanner must not block debootstrap
	return tail
}
