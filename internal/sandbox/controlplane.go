package sandbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// ensureControlPlane brings up etcd, API server, controllers and scheduler in a namespace on the fabric, and a
// listener on the machine's 127.0.0.1 that leads to the API server. It returns when the certificate authority is
// there, before the API server is. port is the listener's former one, or 0; the result is the present one.
func ensureControlPlane(ctx context.Context, l layout, port int) (int, error) {
	p, running := runningFrom(controlPlanePID(l))
	if running && isPlugged(l, l.controlPlane()) {
		return port, waitForAuthority(ctx, l, p)
	}
	if running {
		if err := killAndWait([]process{p}); err != nil {
			return 0, err
		}
	}
	if err := replugEndpoint(l, l.controlPlane()); err != nil {
		return 0, err
	}
	return launchControlPlane(ctx, l, port)
}

// launchControlPlane starts it in the namespace that is ready for it.
func launchControlPlane(ctx context.Context, l layout, port int) (int, error) {
	// it names the former listener
	if err := os.Remove(l.adminKubeconfig()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	// A socket stays in the namespace it was made in: opened here, served from inside the fabric.
	listener, err := listenLoopback(ctx, port)
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	p, err := startControlPlane(l, listener)
	if err != nil {
		return 0, err
	}
	if err := writeProcess(controlPlanePID(l), p); err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, waitForAuthority(ctx, l, p)
}

func startControlPlane(l layout, listener *net.TCPListener) (process, error) {
	fd, err := listener.File()
	if err != nil {
		return process{}, err
	}
	defer fd.Close()
	cmd := exec.Command(l.options.binaryPath("egret-controlplane"), "all",
		"--dir", l.controlPlaneDir(),
		"--bind", l.controlPlane().ips[0].String(),
		"--port", strconv.Itoa(APIPort),
		"--service-cidrs", joinTexts(l.service),
		"--forward-fd", "3", // the first of ExtraFiles
		"--forward-url", "https://"+listener.Addr().String(),
	)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", markerOf(l), rarely}
	cmd.ExtraFiles = []*os.File{fd}
	return startDaemon(l.controlPlane().netns, cmd, controlPlaneLog(l))
}

// rarely has the control plane collect its garbage a quarter as often: in a sandbox processors are short and shared
// with all nodes, memory is not. It took a fifth of its time.
const rarely = "GOGC=400"

func controlPlanePID(l layout) string { return filepath.Join(l.controlPlaneDir(), "pid") }

func controlPlaneLog(l layout) string { return filepath.Join(l.controlPlaneDir(), "log") }

// The first port is below those that the kernel gives to connections and to listeners without a port
// (ip_local_port_range, from 32768 on): while the control plane is stopped, one of them would be taken by chance, and
// clients that know the former port would find nobody there ever again.
const (
	firstPort = 20000
	lastPort  = 32767
	freedIn   = 5 * time.Second // how long a former port may take to be free again
)

// listenLoopback opens the previous port, or a free one if there was no port or another program took it meanwhile.
func listenLoopback(ctx context.Context, port int) (*net.TCPListener, error) {
	if port == 0 {
		return listenAnywhere()
	}
	for deadline := time.Now().Add(freedIn); ; {
		l, err := listenAt(port)
		switch {
		case err == nil:
			return l, nil
		case time.Now().After(deadline):
			return listenAnywhere()
		}
		if err := sleepUnlessDone(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// listenAnywhere begins at a port by chance: of two sandboxes that are brought up at the same time, each has its own.
func listenAnywhere() (*net.TCPListener, error) {
	var err error
	const ports = lastPort - firstPort + 1
	for i, start := 0, rand.IntN(ports); i < ports; i++ {
		var l *net.TCPListener
		if l, err = listenAt(firstPort + (start+i)%ports); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("listener for kubectl: no port from %d to %d is free: %w", firstPort, lastPort, err)
}

func listenAt(port int) (*net.TCPListener, error) {
	return net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
}

// waitForAuthority returns when certificates can be issued.
func waitForAuthority(ctx context.Context, l layout, p process) error {
	for {
		_, err := os.Stat(l.adminKubeconfig()) // written last
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, os.ErrNotExist):
			return err
		case !p.isAlive():
			return fmt.Errorf("the control plane ended: see %s", controlPlaneLog(l))
		}
		if err := sleepUnlessDone(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// sleepUnlessDone sleeps, and returns ctx's error if that ends first.
func sleepUnlessDone(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
