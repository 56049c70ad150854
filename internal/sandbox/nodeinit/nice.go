package nodeinit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// setNice has a process, the first of its session, run as urgently as its nice value says. Linux may divide the
// processors among sessions first (CONFIG_SCHED_AUTOGROUP, sched(7)): there a process' own value counts within its
// session alone, and the session has one, too. One that has ended is left alone.
func setNice(pid, nice int) error {
	if nice == 0 {
		return nil
	}
	err := unix.Setpriority(unix.PRIO_PROCESS, pid, nice)
	if err == nil {
		err = os.WriteFile(autogroupPath(pid), []byte(strconv.Itoa(nice)), 0)
	}
	if err == nil || errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrNotExist) {
		return nil // there are no such groups here, or no such process any more
	}
	return fmt.Errorf("nice %d: %w", nice, err)
}

func autogroupPath(pid int) string { return fmt.Sprintf("/proc/%d/autogroup", pid) }
