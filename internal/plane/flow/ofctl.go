package flow

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/egret-net/egret/internal/plane/ovs/unixctl"
)

// switches are bridges, by name.
type switches interface {
	// sendBundle applies lines to a bridge, all or none: see "Flow Syntax" of ovs-ofctl(8), each after add, delete or
	// delete_strict.
	sendBundle(ctx context.Context, bridge string, lines []string) error
	// dumpFlows returns the flows of a bridge whose cookie matches, one a line.
	dumpFlows(ctx context.Context, bridge, cookie string) ([]string, error)
	// countFlows is how many flows of a bridge have a cookie that matches.
	countFlows(ctx context.Context, bridge, cookie string) (int, error)
	// diffFlows compares a bridge with flows: "-" is before those that only the bridge has, "+" before those that it
	// lacks.
	diffFlows(ctx context.Context, bridge string, flows []string) (string, error)
	// awaitRevalidation returns when all that the datapath has is as the bridges' flows were at the call, or newer.
	awaitRevalidation(ctx context.Context) error
	// listBridges are all that there are.
	listBridges() ([]string, error)
}

// ofctl runs ovs-ofctl against bridges whose sockets are in runDir.
type ofctl struct {
	path, runDir string
	spares       *spares
}

// byNumber spares ovs-ofctl the names of ports and tables, which it asks the switch for before each command otherwise:
// 1.3 MB about 254 tables (OVS 3.5), while ovs-vswitchd's main thread does nothing else. Our flows have numbers.
const byNumber = "--no-names"

// commandError is what ovs-ofctl printed when it failed.
type commandError struct{ text string }

func (e *commandError) Error() string { return e.text }

// isUnreachable says that the bridge's socket did not answer, which is no opinion of the switch on a flow.
func (e *commandError) isUnreachable() bool {
	return strings.Contains(e.text, "failed to connect") || strings.Contains(e.text, "connecting to ") ||
		strings.Contains(e.text, "is not a bridge or a socket") ||
		strings.Contains(e.text, "Connection refused") || strings.Contains(e.text, "connection reset") ||
		strings.Contains(e.text, "transaction aborted") || strings.Contains(e.text, "End of file")
}

var badLine = regexp.MustCompile(`:(\d+): `)

// lineNumber is the number, from 1, of the input line that ovs-ofctl could not parse.
func (e *commandError) lineNumber() (int, bool) {
	m := badLine.FindStringSubmatch(e.text)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

// sendBundle gives the lines to the bridge's spare, and has another one started later. Where somebody ends the spare,
// they are given to a new command; carried out twice, they are as once.
func (o ofctl) sendBundle(ctx context.Context, bridge string, lines []string) error {
	input := strings.Join(lines, "\n") + "\n"
	defer o.spares.prepareFor(bridge, func(ctx context.Context) (*command, error) { return o.startBundle(ctx, bridge) })
	if c := o.spares.takeFor(bridge); c != nil {
		if _, err := c.finishWith(ctx, input); !errors.Is(err, errEnded) {
			return err
		}
	}
	c, err := o.startBundle(ctx, bridge)
	if err == nil {
		_, err = c.finishWith(ctx, input)
	}
	return err
}

// startBundle begins a command that reads its input to the end before it connects to the bridge.
func (o ofctl) startBundle(ctx context.Context, bridge string) (*command, error) {
	return o.startCommand(ctx, "--bundle", "add-flows", o.socketOf(bridge), "-")
}

// revalidationTimeout bounds the wait for the datapath: a round begins at the latest 0.5 s after the one before
// (other_config:max-revalidator of OVS 3.5).
const revalidationTimeout = 3 * time.Second

// awaitRevalidation waits for the end of two rounds: the one that is under way may have passed what has changed.
func (o ofctl) awaitRevalidation(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, revalidationTimeout)
	defer cancel()
	conn, err := unixctl.Dial(ctx, o.runDir, "ovs-vswitchd")
	if err != nil {
		return err
	}
	defer conn.Close()
	for range 2 {
		if err := conn.Ask(ctx, "revalidator/wait"); err != nil {
			return err
		}
	}
	return nil
}

func (o ofctl) dumpFlows(ctx context.Context, bridge, cookie string) ([]string, error) {
	out, err := o.runCommand(ctx, "", "-O", "OpenFlow14", "dump-flows", o.socketOf(bridge), "cookie="+cookie)
	if err != nil {
		return nil, err
	}
	var flows []string
	for l := range strings.Lines(out) {
		if strings.Contains(l, "actions=") {
			flows = append(flows, strings.TrimSpace(l))
		}
	}
	return flows, nil
}

func (o ofctl) countFlows(ctx context.Context, bridge, cookie string) (int, error) {
	out, err := o.runCommand(ctx, "", "dump-aggregate", o.socketOf(bridge), "cookie="+cookie)
	if err != nil {
		return 0, err
	}
	m := flowCount.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("count the flows of bridge %s: answer %q", bridge, out)
	}
	return strconv.Atoi(m[1])
}

var flowCount = regexp.MustCompile(`\bflow_count=(\d+)`)

// listBridges are those that have a socket: a crashed ovs-vswitchd leaves its sockets behind.
func (o ofctl) listBridges() ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(o.runDir, "*.mgmt"))
	for i, p := range paths {
		paths[i] = strings.TrimSuffix(filepath.Base(p), ".mgmt")
	}
	return paths, err
}

func (o ofctl) socketOf(bridge string) string {
	return "unix:" + filepath.Join(o.runDir, bridge+".mgmt")
}

func (o ofctl) runCommand(ctx context.Context, stdin string, args ...string) (string, error) {
	c, err := o.startCommand(ctx, args...)
	if err != nil {
		return "", err
	}
	return c.finishWith(ctx, stdin)
}
