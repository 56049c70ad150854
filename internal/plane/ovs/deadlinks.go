package ovs

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// kernelDatapath is the one that ovs-vswitchd makes in the kernel, and the name of its link.
const kernelDatapath = "ovs-system"

// dpctlTimeout bounds one command of ovs-dpctl, which asks the kernel alone.
const dpctlTimeout = 10 * time.Second

// DeleteLinks deletes links that an ovs-vswitchd has left which does not run any more, and takes the uplink out of the
// kernel's datapath. The datapath goes with its last port. dpctl is ovs-dpctl, or a path to it.
func DeleteLinks(ctx context.Context, dpctl, uplink string, names ...string) error {
	var errs []error
	for _, name := range names {
		err := deleteLink(name)
		if errors.Is(err, unix.EOPNOTSUPP) { // a port of the kernel's datapath
			_, err = runDpctl(ctx, dpctl, "del-if", kernelDatapath, name)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("delete link %s: %w", name, err))
		}
	}
	return errors.Join(append(errs, leaveDatapath(ctx, dpctl, uplink), endPromiscuity(uplink))...)
}

// endPromiscuity has the uplink receive its own packets alone: ovs-vswitchd has it receive all, and undoes that only
// when it takes the link off its bridge itself.
func endPromiscuity(uplink string) error {
	link, err := netlink.LinkByName(uplink)
	if err == nil {
		err = netlink.SetPromiscOff(link)
	}
	if err != nil {
		return fmt.Errorf("have %s receive its own packets alone: %w", uplink, err)
	}
	return nil
}

// leaveDatapath takes the uplink and tunnels out of the kernel's datapath, and deletes it if it has no other port.
func leaveDatapath(ctx context.Context, dpctl, uplink string) error {
	if _, err := netlink.LinkByName(kernelDatapath); err != nil {
		return nil // this kernel has no such datapath
	}
	shown, err := runDpctl(ctx, dpctl, "show", kernelDatapath)
	if err != nil {
		return err
	}
	var tunnels, others []string
	for line := range strings.Lines(shown) {
		number, port, is := strings.Cut(strings.TrimSpace(line), ": ")
		if !is || !strings.HasPrefix(number, "port ") {
			continue
		}
		switch name, _, _ := strings.Cut(port, " "); {
		case name == uplink:
			if _, err := runDpctl(ctx, dpctl, "del-if", kernelDatapath, name); err != nil {
				return err
			}
		case strings.HasPrefix(name, "genev_sys_"):
			tunnels = append(tunnels, name)
		case name != kernelDatapath:
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		return fmt.Errorf("OVS' datapath in the kernel has ports that are not Egret's, and stays: %s",
			strings.Join(others, ", "))
	}
	if _, err = runDpctl(ctx, dpctl, "del-dp", kernelDatapath); err != nil {
		return err
	}
	return deleteTunnels(tunnels)
}

// deleteTunnels deletes links that were tunnels of a datapath. ovs-vswitchd made them, so that the kernel leaves them.
func deleteTunnels(names []string) error {
	var errs []error
	for _, name := range names {
		if err := deleteLink(name); err != nil {
			errs = append(errs, fmt.Errorf("delete link %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// deleteLink deletes a link, which may not be there.
func deleteLink(name string) error {
	link, err := netlink.LinkByName(name)
	if _, none := errors.AsType[netlink.LinkNotFoundError](err); none {
		return nil
	}
	if err != nil {
		return err
	}
	return netlink.LinkDel(link)
}

func runDpctl(ctx context.Context, dpctl string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, dpctlTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, dpctl, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("ovs-dpctl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), err
}
