package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	restclient "k8s.io/client-go/rest"
)

var errStopped = errors.New("stopped by signal")

// runAll runs the whole control plane until SIGTERM or SIGINT, or until a part of it fails.
func runAll(args []string) error {
	c, err := parseConfig(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		cancel(errStopped)
	}()
	if err := serve(ctx, cancel, c); err != nil && !errors.Is(err, errStopped) {
		return err
	}
	return nil
}

// serve starts etcd, then what needs it, and stops them in the opposite order.
func serve(ctx context.Context, cancel context.CancelCauseFunc, c config) error {
	report := stopwatch()
	forwarder, err := newForwarder(c)
	if err != nil {
		return err
	}
	if err := ensureCredentials(c); err != nil {
		return err
	}
	report("credentials in " + c.dir)
	etcdURL, etcd, err := startEtcd(ctx, c)
	if err != nil {
		return err
	}
	defer etcd.Close()
	report("etcd ready")
	restclient.SetDefaultWarningHandler(restclient.NoWarnings{})
	apiserver, err := newAPIServer(c, etcdURL)
	if err != nil {
		return err
	}
	p := &parts{ctx: ctx, cancel: cancel}
	defer p.running.Wait()
	p.start("kube-apiserver", apiserver)
	if forwarder != nil {
		p.start("forwarder", forwarder)
	}
	return p.serveReady(c, report)
}

// parts are the components that run until ctx ends; the first to end by itself ends all.
type parts struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
}

func (p *parts) start(name string, run func(context.Context) error) {
	p.running.Go(func() { p.cancel(ended(p.ctx, name, run(p.ctx))) })
}

// serveReady starts the API server's clients once it is ready, and returns when all are to end.
func (p *parts) serveReady(c config, report func(string)) error {
	if err := waitReady(p.ctx, c); err != nil {
		p.cancel(err)
		return err
	}
	report("kube-apiserver ready")
	p.start("kube-controller-manager", func(ctx context.Context) error { return runControllerManager(ctx, c) })
	p.start("kube-scheduler", func(ctx context.Context) error { return runScheduler(ctx, c) })
	<-p.ctx.Done()
	report("stopping")
	return context.Cause(p.ctx)
}

// newForwarder opens --forward-fd; nil if there is none.
func newForwarder(c config) (func(context.Context) error, error) {
	if c.forwardFD < 0 {
		return nil, nil
	}
	l, err := inheritedListener(c.forwardFD)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return forward(ctx, l, c.address()) }, nil
}

// ended says why a part returned: because it was asked to, or by itself, which ends the others.
func ended(ctx context.Context, name string, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		return fmt.Errorf("%s ended by itself", name)
	default:
		return fmt.Errorf("%s: %w", name, err)
	}
}

// stopwatch returns a function that prints what was reached, with the seconds since the start.
func stopwatch() func(string) {
	began := time.Now()
	return func(what string) { fmt.Printf("%6.2fs %s\n", time.Since(began).Seconds(), what) }
}
