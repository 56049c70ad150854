package pulse

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"

	"github.com/egret-net/egret/internal/plane/ovs/unixctl"
)

// Database asks the ovsdb-server at endpoint ("unix:PATH") for an echo (RFC 7047 4.1.11).
func Database(endpoint string) Question {
	return func(ctx context.Context) error {
		network, address, _ := strings.Cut(endpoint, ":")
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return fmt.Errorf("is it running? %w", err)
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		if _, err := conn.Write([]byte(`{"method":"echo","params":[],"id":"egret"}`)); err != nil {
			return err
		}
		answers := json.NewDecoder(conn)
		var reply struct{ ID string }
		for reply.ID != "egret" { // it may ask for an echo itself
			if err := answers.Decode(&reply); err != nil {
				return err
			}
		}
		return nil
	}
}

// Daemon asks the OVS or OVN daemon whose pid file is in runDir for its version.
func Daemon(runDir, name string) Question {
	return func(ctx context.Context) error {
		conn, err := unixctl.Dial(ctx, runDir, name)
		if err != nil {
			return err
		}
		defer conn.Close()
		return conn.Ask(ctx, "version")
	}
}
