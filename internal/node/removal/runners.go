package removal

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/egret-net/egret/internal/plane/pulse"
)

// askTimeout is how long a program that runs may take to answer.
const askTimeout = 2 * time.Second

// runner is a program that would bring back what is removed.
type runner struct {
	name string
	ask  pulse.Question
}

func runners(o Options) []runner {
	return []runner{
		{"egret-node", func(ctx context.Context) error { return dialSocket(ctx, o.AgentSocket) }},
		{"ovn-controller", pulse.Daemon(o.ovnRunDir(), "ovn-controller")},
		{"ovn-northd", pulse.Daemon(o.ovnRunDir(), "ovn-northd")},
		{"ovsdb-server (OVN_Northbound)", pulse.Database(o.Northbound)},
		{"ovsdb-server (OVN_Southbound)", pulse.Database(o.Southbound)},
	}
}

func dialSocket(ctx context.Context, path string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err == nil {
		conn.Close()
	}
	return err
}

// checkStopped returns an error if one of the programs runs.
func checkStopped(ctx context.Context, all []runner) error {
	for _, r := range all {
		if isAnswered(ctx, r.ask) {
			return fmt.Errorf("%s still runs on this node, and would bring back what is removed: stop it first "+
				"(kubectl -n egret-system delete daemonset egret-node), and run this again", r.name)
		}
	}
	return nil
}

func isAnswered(ctx context.Context, ask pulse.Question) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return ask(ctx) == nil
}
