package demo

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

const (
	serverPort  = 8080 // of the pods and of external hosts
	connections = 8    // to each destination outside: all eight on the same of two egress IPs is a chance of 1 in 128
)

// target is a server that answers with its client's address, and the sources that are right there.
type target struct {
	name  string
	ip    netip.Addr
	times int // number of connections
	want  []netip.Addr
}

func (t target) clientURL() string {
	return "http://" + netip.AddrPortFrom(t.ip, serverPort).String() + "/clientip"
}

func (t target) rowFor(p corev1.Pod) row {
	return row{pod: p.Namespace + "/" + p.Name, node: p.Spec.NodeName, destination: t.name + " " + t.ip.String(),
		want: t.want}
}

// probeFrom connects from inside the pod to each target, each time by a new connection, and fills the rows, one for
// each target.
func (d *demo) probeFrom(ctx context.Context, p corev1.Pod, targets []target, rows []row) error {
	// -g: brackets of IPv6 addresses are no pattern. The written line says which connection an answer is of.
	args := []string{"curl", "-gs", "--connect-timeout", "2", "--max-time", "4", "-H", "Connection: close",
		"-w", "\t%{url}\t%{errormsg}\n"}
	for _, t := range targets {
		for range t.times {
			args = append(args, t.clientURL())
		}
	}
	// curl's exit status is the last connection's: its lines tell more.
	out, err := d.execIn(ctx, p, args...)
	answers := parseAnswers(string(out))
	if len(answers) == 0 {
		return fmt.Errorf("curl in pod %s/%s said nothing: %w", p.Namespace, p.Name, err)
	}
	for i, t := range targets {
		rows[i].answers, rows[i].awaiting = answers[t.clientURL()], false
	}
	return nil
}

// parseAnswers reads lines of answer, URL, error message, with tabs between, and returns the answers by URL.
func parseAnswers(text string) map[string][]answer {
	all := map[string][]answer{}
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 {
			continue
		}
		all[fields[1]] = append(all[fields[1]], parseAnswer(fields[0], fields[2]))
	}
	return all
}

func parseAnswer(client, failure string) answer {
	if failure != "" {
		return answer{failure: failureKind(failure)}
	}
	from, err := netip.ParseAddrPort(client)
	if err != nil {
		return answer{failure: "not an address: " + client}
	}
	return answer{source: from.Addr().Unmap()}
}

// failureKind shortens curl's message, so that equal failures count as one: they name times and addresses.
func failureKind(message string) string {
	for _, kind := range []string{"refused", "No route to host", "Network is unreachable", "reset by peer"} {
		if strings.Contains(message, kind) {
			return kind
		}
	}
	return "no answer"
}

// execIn runs a command in the pod and returns its output, of a command that failed too.
func (d *demo) execIn(ctx context.Context, p corev1.Pod, command ...string) ([]byte, error) {
	url := d.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(p.Namespace).Name(p.Name).SubResource(
		"exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true},
			scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewWebSocketExecutor(d.config, "GET", url.String())
	if err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	if err := executor.StreamWithContext(ctx,
		remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr}); err != nil {
		return stdout.Bytes(), fmt.Errorf("%s in pod %s/%s: %w\n%s", command[0], p.Namespace, p.Name, err,
			stderr.Bytes())
	}
	return stdout.Bytes(), nil
}
