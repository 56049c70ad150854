package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/egret-net/egret/internal/limit"
)

// answerWithin is how long an agent may take to follow before it answers that it has not.
const answerWithin = time.Second

// mostKinds is how many versions a question may name, and an answer.
const mostKinds = 32

// bounds leave room for all nodes of a cluster that ask at once, each with one question.
var bounds = limit.Bounds{Connections: 1024, PerPeer: 2, NewPerSecond: 50, BytesPerSecond: 64 << 10}

// Server answers questions.
type Server struct {
	Node string // of this agent
	// Asks says whether an address is one that agents ask from.
	Asks func(netip.Addr) bool
	// Followed returns when the world has what was seen at these versions, and the targets hold what follows, with the
	// newest versions that this agent has seen.
	Followed func(ctx context.Context, versions map[string]string) (newest map[string]string, err error)
	Log      *slog.Logger
}

// Serve answers on a listener until ctx is done.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, s.answerQuestion)
	server := &http.Server{Handler: mux, ReadTimeout: answerWithin, WriteTimeout: 2 * answerWithin,
		MaxHeaderBytes: 4 << 10, BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug)}
	server.SetKeepAlivesEnabled(false)
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(limit.Listen(&asking{l, s.Asks}, bounds)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answer other agents on %s: %w", l.Addr(), err)
	}
	return nil
}

// asking accepts connections from agents alone: those of pods, and of kubelets for them, take no agent's place, however
// many they are.
type asking struct {
	net.Listener
	is func(netip.Addr) bool
}

func (l *asking) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, err := netip.ParseAddrPort(c.RemoteAddr().String())
		if err == nil && from.Port() < reservedPorts && l.is(from.Addr().Unmap()) {
			return c, nil
		}
		c.Close()
	}
}

func (s *Server) answerQuestion(w http.ResponseWriter, r *http.Request) {
	if asked := r.Header.Get(nodeHeader); asked != "" && asked != s.Node {
		http.Error(w, "this is another node's agent", http.StatusMisdirectedRequest)
		return
	}
	versions, err := decodeVersions(r.URL.RawQuery)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
	defer cancel()
	newest, err := s.Followed(ctx, versions)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set(newestHeader, encodeVersions(newest))
	w.WriteHeader(http.StatusNoContent)
}

// nodeHeader has the node that a question is for: another one may have its address by now. An agent of an older version
// names none.
const nodeHeader = "Egret-Node"

// newestHeader has what the agent that answers has seen, as the query of a question has it.
const newestHeader = "Egret-Newest"

func encodeVersions(versions map[string]string) string {
	values := url.Values{}
	for kind, version := range versions {
		values.Set(kind, version)
	}
	return values.Encode()
}

func decodeVersions(text string) (map[string]string, error) {
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, err
	}
	if len(values) > mostKinds {
		return nil, errors.New("too many kinds")
	}
	versions := map[string]string{}
	for kind, all := range values {
		versions[kind] = all[0]
	}
	return versions, nil
}
