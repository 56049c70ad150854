package cniserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"

	"github.com/egret-net/egret/internal/cni"
	"github.com/egret-net/egret/internal/node/ipam"
)

const (
	// callTimeout bounds one call; it is below the plugin's, so that the plugin is told why.
	callTimeout = 60 * time.Second
	maxRequest  = 1 << 20 // bytes
)

// Server attaches pods. It may be used by several goroutines.
type Server struct {
	// Answered is called for each call; it is set before Serve, and may be called concurrently.
	Answered func(command string, took time.Duration, err error)

	attachments Attachments
	node        Node
	log         *slog.Logger
	containers  serial
	pods        serial

	mu    sync.Mutex
	pools map[string]*ipam.Pool // by network, since a pod of it first came
	// half are attachments that could not be taken away whole, by container: the port, which goes first, may have gone.
	half map[string]PodPort
}

// New makes a server; Serve starts it.
func New(attachments Attachments, node Node, log *slog.Logger) *Server {
	return &Server{Answered: func(string, time.Duration, error) {}, attachments: attachments, node: node, log: log,
		pools: map[string]*ipam.Pool{}, half: map[string]PodPort{}}
}

// Listen opens the unix socket, readable by root only, in place of one that a former process left.
func Listen(socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of socket %s: %w", socket, err)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the former socket %s: %w", socket, err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", socket, err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("protect socket %s: %w", socket, err)
	}
	return l, nil
}

// Serve answers calls until ctx ends, then lets those under way finish.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+cni.Path, s.serveRequest)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		_ = server.Shutdown(last) // calls that have not ended by then are cut off with the process
	})
	err := server.Serve(l)
	if stop() {
		return fmt.Errorf("serve the CNI plugin: %w", err)
	}
	<-stopped
	return nil
}

func (s *Server) serveRequest(w http.ResponseWriter, h *http.Request) {
	r := &cni.Request{}
	if err := json.NewDecoder(http.MaxBytesReader(w, h.Body, maxRequest)).Decode(r); err != nil {
		http.Error(w, "the request is not JSON: "+err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(h.Context(), callTimeout)
	defer cancel()
	start := time.Now()
	result, err := s.Handle(ctx, r)
	s.Answered(string(r.Command), time.Since(start), err)
	log := s.log.With("command", r.Command, "container", r.ContainerID, "namespace", r.Pod.Namespace, "pod", r.Pod.Name,
		"took", time.Since(start))
	if err != nil {
		log.Warn("CNI call refused", "error", err)
	} else {
		log.Debug("CNI call done")
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(cni.Response{Result: result, Error: cniError(err)}); err != nil {
		log.Warn("the CNI plugin went away before its answer", "error", err)
	}
}

// Handle carries one call out; the result is for ADD only.
func (s *Server) Handle(ctx context.Context, r *cni.Request) (*current.Result, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	switch r.Command {
	case cni.Status:
		return nil, s.checkStatus()
	case cni.GC:
		return nil, s.collectGarbage(ctx, *r.ValidAttachments)
	}
	unlock, err := s.containers.lockKey(ctx, r.ContainerID)
	if err != nil {
		return nil, fmt.Errorf("wait for another call for this container: %w", err)
	}
	defer unlock()
	switch r.Command {
	case cni.Add:
		return s.addPod(ctx, r)
	case cni.Check:
		return nil, s.checkPod(ctx, r)
	}
	return nil, s.deletePod(ctx, r)
}

func (s *Server) checkStatus() error {
	if err := s.node.Ready(); err != nil {
		return types.NewError(types.ErrPluginNotAvailable, "Egret cannot attach pods on this node yet", err.Error())
	}
	return nil
}

// cniError is the plugin's form of an error; errors that carry no code are internal, a full subnet passes.
func cniError(err error) *types.Error {
	var coded *types.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &coded):
		return coded
	case errors.Is(err, ipam.ErrFull), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return types.NewError(types.ErrTryAgainLater, err.Error(), "")
	}
	return types.NewError(types.ErrInternal, err.Error(), "")
}
