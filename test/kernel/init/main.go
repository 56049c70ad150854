// Command init is the first program of the virtual machine of `make test-kernel`: it makes the nodes' Debian root
// folder its root, with changes kept in memory, loads the modules under test, runs the tests and switches the machine
// off.
//
// In: the shares and orders of package boot. Out: the tests' output on the second serial line, and the status file.
package main

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/test/kernel/boot"
)

func main() {
	code, err := run()
	if err != nil {
		fmt.Println("init:", err) // the kernel's console
		code = 1
	}
	status := []byte(strconv.Itoa(code) + "\n")
	if err := os.WriteFile(boot.Share+"/"+boot.StatusFile, status, 0o644); err != nil {
		fmt.Println("init: status:", err)
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func run() (code int, err error) {
	if err := loadAll("/" + boot.Modules); err != nil {
		return 1, err
	}
	if err := enterRoot(); err != nil {
		return 1, fmt.Errorf("root folder: %w", err)
	}
	orders, err := readOrders()
	if err != nil {
		return 1, err
	}
	if err := prepare(orders.KernelVersion); err != nil {
		return 1, err
	}
	out, err := os.OpenFile("/dev/ttyS1", os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return 1, err
	}
	defer out.Close()
	for _, t := range orders.Tests {
		if c := runTest(t, out); code == 0 {
			code = c
		}
	}
	return code, unix.IoctlSetInt(int(out.Fd()), unix.TCSBRK, 1) // until the last line is through
}
