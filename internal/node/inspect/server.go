package inspect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/egret-net/egret/internal/trace"
)

const (
	// DefaultSocket is where an agent listens.
	DefaultSocket = "/run/egret/agent.sock"
	// callTimeout bounds one question.
	callTimeout = 20 * time.Second
	// maxHeader bounds a request: all of it is in the URL.
	maxHeader = 8 << 10
)

var errBusy = errors.New("others ask the agent at the same time: ask again")

// Agent answers. Its errors are shown as they are.
type Agent interface {
	// Plan is what the agent wants of its node, one line a row: all of it, or what concerns one object
	// ("egressip/prod").
	Plan(ctx context.Context, object string) (string, error)
	// Differences are between that and what the node's targets hold.
	Differences(ctx context.Context, object string) (string, error)
	// Trace is the way of a packet of a pod ("shop/web-0") of this node. The packet has no source.
	Trace(ctx context.Context, pod string, p trace.Packet) (string, error)
}

// Serve answers questions until ctx ends, one at a time: the agent has its own work to do between any two.
func Serve(ctx context.Context, l net.Listener, a Agent) error {
	mux, turn := http.NewServeMux(), make(chan struct{}, 1)
	mux.HandleFunc("GET /plan", answerInTurn(turn, func(ctx context.Context, r *http.Request) (string, error) {
		if r.FormValue("diff") != "" {
			return a.Differences(ctx, r.FormValue("owner"))
		}
		return a.Plan(ctx, r.FormValue("owner"))
	}))
	mux.HandleFunc("GET /trace", answerInTurn(turn, func(ctx context.Context, r *http.Request) (string, error) {
		p, err := parsePacket(r)
		if err != nil {
			return "", err
		}
		return a.Trace(ctx, r.FormValue("pod"), p)
	}))
	server := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, MaxHeaderBytes: maxHeader}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(l); stop() {
		return fmt.Errorf("serve questions to the agent: %w", err)
	}
	return nil
}

// answerInTurn has a question asked when it has its turn; not, when who asks has given up before.
func answerInTurn(turn chan struct{}, ask func(context.Context, *http.Request) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
		defer cancel()
		text, err := "", errBusy
		select {
		case turn <- struct{}{}:
			if ctx.Err() == nil {
				text, err = ask(ctx, r)
			}
			<-turn
		case <-ctx.Done():
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if err != nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			text = err.Error()
		}
		w.Write([]byte(text)) //nolint:errcheck // who asked has gone away
	}
}

// parsePacket reads the packet to trace.
func parsePacket(r *http.Request) (trace.Packet, error) {
	to, err := netip.ParseAddr(r.FormValue("to"))
	if err != nil {
		return trace.Packet{}, fmt.Errorf("destination %q is no IP address such as 203.0.113.7", r.FormValue("to"))
	}
	port, err := strconv.ParseUint(r.FormValue("port"), 10, 16)
	if err != nil {
		return trace.Packet{}, fmt.Errorf("port %q is no number from 0 to 65535", r.FormValue("port"))
	}
	switch proto := r.FormValue("protocol"); proto {
	case "tcp", "udp", "sctp", "icmp":
		return trace.Packet{Dst: to.Unmap(), Proto: proto, DstPort: uint16(port)}, nil
	default:
		return trace.Packet{}, fmt.Errorf("protocol %q: give tcp, udp, sctp or icmp", proto)
	}
}
