package conntrack

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/egret-net/egret/internal/plane/ovs/unixctl"
)

// Target is where connections are tracked.
type Target interface {
	// Dump lists the entries of a zone that are like any of some patterns; without patterns, all. It may list more. A
	// pattern is an Entry's protocol and original direction; fields that are zero are not compared. Entries that cannot
	// be read are an error in addition to those that can.
	Dump(ctx context.Context, zone int, like ...Entry) ([]Entry, error)
	// Flush ends exactly these connections; one that is gone already is no error.
	Flush(ctx context.Context, entries ...Entry) error
}

// fewPatterns are looked for one by one: for each, the kernel goes through its whole table.
const fewPatterns = 8

// Switch is the conntrack of ovs-vswitchd, asked over its control socket in RunDir (/run/openvswitch). With bridges of
// both kinds there are two datapaths, and dpctl commands without a name then fail: each is asked by name.
type Switch struct{ RunDir string }

// Dump asks every datapath, which lists all of a zone (OVS 3.5).
func (s Switch) Dump(ctx context.Context, zone int, _ ...Entry) ([]Entry, error) {
	var entries []Entry
	var errs []error
	err := s.eachDatapath(ctx, func(c *unixctl.Conn, datapath string) error {
		out, err := c.Call(ctx, "dpctl/dump-conntrack", datapath, fmt.Sprintf("zone=%d", zone))
		if err != nil {
			return fmt.Errorf("read conntrack zone %d of %s: %w", zone, datapath, err)
		}
		for line := range strings.Lines(out) {
			e, err := parseEntry(line)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			entries = append(entries, e)
		}
		return nil
	})
	return entries, errors.Join(append(errs, err)...)
}

// Flush ends the entries in every datapath.
func (s Switch) Flush(ctx context.Context, entries ...Entry) error {
	return s.eachDatapath(ctx, func(c *unixctl.Conn, datapath string) error {
		args := make([][]string, len(entries))
		for i, e := range entries {
			args[i] = []string{datapath, fmt.Sprintf("zone=%d", e.Zone), e.flushTuple()}
		}
		return c.CallEach(ctx, "dpctl/flush-conntrack", args, unlessEnded)
	})
}

// unlessEnded returns an error unless it is ENOENT: the connection has ended meanwhile.
func unlessEnded(refused *unixctl.CommandError) error {
	if strings.Contains(refused.Text, "No such file") {
		return nil
	}
	return refused
}

func (s Switch) eachDatapath(ctx context.Context, do func(c *unixctl.Conn, datapath string) error) error {
	c, err := unixctl.Dial(ctx, s.RunDir, "ovs-vswitchd")
	if err != nil {
		return err
	}
	defer c.Close()
	out, err := c.Call(ctx, "dpctl/dump-dps")
	if err != nil {
		return fmt.Errorf("list datapaths: %w", err)
	}
	for _, datapath := range strings.Fields(out) {
		if err := do(c, datapath); err != nil {
			return err
		}
	}
	return nil
}
