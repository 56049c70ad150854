package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/egret-net/egret/internal/sandbox"
)

// suite is e2e.test and the cluster it runs against.
type suite struct {
	settings
	cluster *sandbox.Cluster
}

// run prepares the cluster and runs the suite. A spec that failed is no error.
func (s suite) run(ctx context.Context) ([]spec, error) {
	if err := s.provideImages(ctx); err != nil {
		return nil, fmt.Errorf("images of the suite: %w", err)
	}
	if err := s.spreadZones(ctx); err != nil {
		return nil, fmt.Errorf("zones of the nodes: %w", err)
	}
	if err := s.connectControlPlane(ctx); err != nil {
		return nil, fmt.Errorf("the API server's way to pods: %w", err)
	}
	stop, err := s.balance(ctx)
	if err != nil {
		return nil, fmt.Errorf("load balancer: %w", err)
	}
	defer stop()
	kubeconfig, err := s.kubeconfig()
	if err != nil {
		return nil, err
	}
	kubectl := filepath.Join(s.out, "kubectl")
	if err := os.Symlink(filepath.Join(s.sandbox.BinDir, "egret-controlplane"), kubectl); err != nil &&
		!errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if err := s.ginkgo(ctx, kubeconfig, kubectl); err != nil {
		return nil, err
	}
	return readReport(filepath.Join(s.out, reportFile))
}

// kubeconfig writes the administrator's, with the API server's address on the fabric: the one on 127.0.0.1 is the
// machine's.
func (s suite) kubeconfig() (file string, err error) {
	config, err := clientcmd.LoadFromFile(s.cluster.Kubeconfig())
	if err != nil {
		return "", err
	}
	for _, c := range config.Clusters {
		c.Server = s.cluster.APIURL()
	}
	file = filepath.Join(s.out, "kubeconfig")
	return file, clientcmd.WriteToFile(*config, file)
}

const reportFile = "report.json"

// ginkgo runs the suite in the client's network until all specs have ended.
func (s suite) ginkgo(ctx context.Context, kubeconfig, kubectl string) error {
	skip := cannotRun()
	if s.skip != "" {
		skip = append(skip, exclusion{pattern: s.skip})
	}
	args := []string{s.bin("ginkgo"), "--no-color", "--silence-skips", "--procs=" + strconv.Itoa(s.procs),
		"--timeout=" + s.limit.String(),
		"--focus=" + s.focus, "--output-dir=" + s.out, "--json-report=" + reportFile}
	for _, e := range skip {
		args = append(args, "--skip="+e.pattern)
	}
	args = append(args, s.bin("e2e.test"), "--", "--kubeconfig="+kubeconfig, "--kubectl-path="+kubectl,
		"--e2e-output-dir="+s.out,
		"--num-nodes="+strconv.Itoa(len(s.cluster.Nodes())))
	command, err := s.cluster.Command(s.client(), args...)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.out, "e2e.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintf(os.Stderr, "the suite runs, %d specs at a time; its output is in %s\n", s.procs, log.Name())
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.WaitDelay = log, log, s.out, 10*time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	// A spec that failed is in the report.
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		return err
	}
	return ctx.Err()
}

func (s suite) bin(name string) string { return filepath.Join(s.sandbox.BinDir, name) }

// client is the external host whose network the suite runs in.
func (s suite) client() string { return s.cluster.ExternalHosts()[0].Name }
