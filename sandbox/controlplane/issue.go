package main

import (
	"errors"
	"path/filepath"

	"github.com/spf13/pflag"
)

// runIssue signs one client certificate with the CA of a state folder that "all" was started on:
// OUT.crt and OUT.key, and OUT.kubeconfig if a server is named.
func runIssue(args []string) error {
	var dir, name, out, server string
	var s subject
	fs := pflag.NewFlagSet("issue", pflag.ContinueOnError)
	fs.StringVar(&dir, "dir", "", "state folder of the control plane")
	fs.StringVar(&s.commonName, "cn", "", "common name: the user, such as system:node:n1")
	fs.StringSliceVar(&s.organizations, "org", nil, "organizations: the groups, such as system:nodes")
	fs.StringVar(&out, "out", "", "prefix of the files to write")
	fs.StringVar(&server, "server", "", "API server URL; also writes OUT.kubeconfig")
	fs.StringVar(&name, "name", "", "user's name inside the kubeconfig (default: --cn)")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if dir == "" || s.commonName == "" || out == "" {
		return errors.New("issue: --dir, --cn and --out are all needed")
	}
	if name == "" {
		name = s.commonName
	}
	pki := filepath.Join(dir, "pki")
	ca, err := loadAuthority(pki)
	if err != nil {
		return err
	}
	if err := ca.issue(out, s); err != nil {
		return err
	}
	if server == "" {
		return nil
	}
	return writeKubeconfig(out+".kubeconfig", name, server, filepath.Join(pki, "ca.crt"), out)
}
