package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// newAPIServer prepares a kube-apiserver. It sets the process-wide feature gates and logging, so it is called once,
// and before the other components are set up.
func newAPIServer(c config, etcdURL string) (func(context.Context) error, error) {
	opts := options.NewServerRunOptions()
	fs := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, f := range opts.Flags().FlagSets {
		fs.AddFlagSet(f)
	}
	logs.AddFlags(fs, logs.SkipLoggingConfigurationFlags())
	if err := fs.Parse(append(apiserverArgs(c, etcdURL), c.apiserverArgs...)); err != nil {
		return nil, fmt.Errorf("kube-apiserver flags: %w", err)
	}
	registry := opts.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := registry.Set(); err != nil {
		return nil, fmt.Errorf("feature gates: %w", err)
	}
	logs.InitLogs()
	if err := logsapi.ValidateAndApply(opts.Logs,
		registry.FeatureGateFor(basecompatibility.DefaultKubeComponent)); err != nil {
		return nil, fmt.Errorf("logging: %w", err)
	}
	return func(ctx context.Context) error {
		completed, err := opts.Complete(ctx)
		if err != nil {
			return err
		}
		if errs := completed.Validate(); len(errs) > 0 {
			return errors.Join(errs...)
		}
		return apiserver.Run(ctx, completed)
	}, nil
}

func apiserverArgs(c config, etcdURL string) []string {
	cidrs := make([]string, len(c.serviceCIDRs))
	for i, p := range c.serviceCIDRs {
		cidrs[i] = p.String()
	}
	return []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=" + c.bind.String(),
		"--advertise-address=" + c.bind.String(),
		"--secure-port=" + strconv.Itoa(int(c.port)),
		"--service-cluster-ip-range=" + strings.Join(cidrs, ","),
		"--tls-cert-file=" + c.pkiFile("apiserver.crt"),
		"--tls-private-key-file=" + c.pkiFile("apiserver.key"),
		"--client-ca-file=" + c.pkiFile("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.pkiFile("sa.key"),
		"--service-account-signing-key-file=" + c.pkiFile("sa.key"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--kubelet-client-certificate=" + c.pkiFile("kubelet-client.crt"),
		"--kubelet-client-key=" + c.pkiFile("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP,Hostname",
		"--requestheader-client-ca-file=" + c.pkiFile("ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.pkiFile("front-proxy-client.crt"),
		"--proxy-client-key-file=" + c.pkiFile("front-proxy-client.key"),
		"--enable-priority-and-fairness=false",
	}
}

// waitReady returns when the API server's /readyz says so, or with ctx's cause.
func waitReady(ctx context.Context, c config) error {
	client, err := readyzClient(c)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if ready(ctx, client, c.serverURL()+"/readyz") {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func readyzClient(c config) (*http.Client, error) {
	ca, err := os.ReadFile(c.pkiFile("ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s holds no certificate", c.pkiFile("ca.crt"))
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	return &http.Client{Timeout: time.Second, Transport: transport}, nil
}

func ready(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
