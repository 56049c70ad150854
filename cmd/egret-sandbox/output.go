package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/egret-net/egret/internal/sandbox"
)

// replaceProcess replaces this process by a command, which so keeps terminal, signals and exit status.
func replaceProcess(command, environment []string) error {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	return syscall.Exec(path, command, environment)
}

func printStatus(out io.Writer, s sandbox.Status, format string) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(s)
	case "":
		return printTable(out, s)
	default:
		return fmt.Errorf("output format %q: want json, or nothing", format)
	}
}

func printTable(out io.Writer, s sandbox.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tKIND\tADDRESSES\tREADY")
	for _, n := range s.Nodes {
		fmt.Fprintf(w, "%s\tnode\t%s\t%t\n", n.Name, joinTexts(n.IPs), n.Ready)
	}
	for _, h := range s.ExternalHosts {
		fmt.Fprintf(w, "%s\texternal host\t%s\t\n", h.Name, joinTexts(h.IPs))
	}
	for _, n := range s.Networks {
		fmt.Fprintf(w, "%s\tnetwork\t%s\t\n", n.Name, joinTexts(n.Subnets))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "\nexport KUBECONFIG="+s.Kubeconfig)
	return err
}

func joinTexts[T fmt.Stringer](items []T) string {
	var all []string
	for _, i := range items {
		all = append(all, i.String())
	}
	return strings.Join(all, ",")
}
