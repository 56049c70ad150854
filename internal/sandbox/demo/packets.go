package demo

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

const (
	serverPort  = 8080 // of the pods and of external hosts
	noAnswer    = "no answer"
	connections = 8 // to each destination outside: all eight on the same of two egress IPs is a chance of 1 in 128
)

// row is what one destination saw of one pod.
type row struct {
	pod, node, destination string

	url     string
	times   int
	want    []string // the sources that are right
	mayMiss bool     // a connection may fail, such as while an address moves; a wrong source is wrong all the same
	seen    []string // the source of each connection, or why there was none
}

// showSources shows what every pod's connections look like at every destination. Each egress IP must be seen.
func (d *demo) showSources(ctx context.Context) error {
	e, err := d.readEgressIP(ctx, exampleName)
	if err != nil {
		return err
	}
	perPod := make([][]row, len(d.pods))
	for i, p := range d.pods {
		perPod[i] = d.rowsOf(p, e)
	}
	if err := d.connectAndJudge(ctx, d.pods, perPod); err != nil {
		return err
	}
	rows := slices.Concat(perPod...)
	for _, ip := range e.Spec.EgressIPs {
		if !slices.ContainsFunc(rows, func(r row) bool { return slices.Contains(r.seen, ip) }) {
			d.wrong++
			d.printLine("WRONG: no connection left with %s", ip)
		}
	}
	return nil
}

// connectAndJudge fills each pod's rows, and prints them with their verdicts.
func (d *demo) connectAndJudge(ctx context.Context, pods []corev1.Pod, perPod [][]row) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i, p := range pods {
		g.Go(func() error { return d.connectFrom(ctx, p, perPod[i], `curl "$@"`) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	d.judgeRows(slices.Concat(perPod...))
	return nil
}

// streamConnections lets selected pods connect to the first host for six seconds, one connection after the other. The
// pause keeps two cores from being busy with starting curl alone.
func (d *demo) streamConnections(ctx context.Context, e *v1.EgressIP) ([]row, error) {
	selected := slices.DeleteFunc(slices.Clone(d.pods), func(p corev1.Pod) bool { return !isSelected(p) })
	perPod := make([][]row, len(selected))
	g, ctx := errgroup.WithContext(ctx)
	for i, p := range selected {
		for _, ip := range d.cluster.ExternalHosts()[0].IPs {
			r := newRow(p, d.cluster.ExternalHosts()[0].Name, ip, 1, e.Spec.EgressIPs)
			r.mayMiss = true
			perPod[i] = append(perPod[i], r)
		}
		g.Go(func() error {
			return d.connectFrom(ctx, p, perPod[i], `while ((SECONDS < 6)); do curl "$@"; sleep 0.02; done`)
		})
	}
	err := g.Wait()
	return slices.Concat(perPod...), err
}

// rowsOf lists where a pod connects to: the hosts outside; a selected pod also to a pod and to the nodes, where it must
// be seen as without an EgressIP.
func (d *demo) rowsOf(p corev1.Pod, e *v1.EgressIP) (rows []row) {
	nodes := d.cluster.Nodes()
	at := slices.IndexFunc(nodes, func(m sandbox.Member) bool { return m.Name == p.Spec.NodeName })
	own, other := nodes[at], nodes[(at+1)%len(nodes)]
	ownIPs, podIPs := formatAddresses(own.IPs), addressesOf(p)
	want := ownIPs
	if isSelected(p) {
		want = e.Spec.EgressIPs
	}
	for _, h := range d.cluster.ExternalHosts() {
		for _, ip := range h.IPs {
			rows = append(rows, newRow(p, h.Name, ip, connections, want))
		}
	}
	if !isSelected(p) {
		return rows
	}
	for _, peer := range d.pods {
		if !isSelected(peer) || peer.Spec.NodeName != other.Name {
			continue
		}
		for _, ip := range addressesOf(peer) {
			rows = append(rows, newRow(p, "pod on "+other.Name, netip.MustParseAddr(ip), 1, podIPs))
		}
	}
	for _, ip := range other.IPs {
		rows = append(rows, newRow(p, "node "+other.Name, ip, 1, ownIPs))
	}
	for _, ip := range own.IPs {
		rows = append(rows, newRow(p, "own node", ip, 1, podIPs))
	}
	return rows
}

// newRow keeps of want what has the destination's family.
func newRow(p corev1.Pod, name string, ip netip.Addr, times int, want []string) row {
	r := row{pod: p.Namespace + "/" + p.Name, node: p.Spec.NodeName,
		destination: name + " " + ip.String(), times: times,
		url: "http://" + netip.AddrPortFrom(ip, serverPort).String() + "/clientip"}
	for _, w := range want {
		if netip.MustParseAddr(w).Is4() == ip.Is4() {
			r.want = append(r.want, w)
		}
	}
	return r
}

func addressesOf(p corev1.Pod) (out []string) {
	for _, ip := range p.Status.PodIPs {
		out = append(out, ip.IP)
	}
	return out
}

func formatAddresses(ips []netip.Addr) (out []string) {
	for _, ip := range ips {
		out = append(out, ip.String())
	}
	return out
}

// connectFrom runs a script in the pod, which gives curl its arguments, and fills the rows. Each
// connection is a new one.
func (d *demo) connectFrom(ctx context.Context, p corev1.Pod, rows []row, script string) error {
	// -g: brackets of IPv6 addresses are no pattern. The written line says which connection an answer is of.
	args := []string{"exec", "-n", p.Namespace, p.Name, "--", "bash", "-c", script + "; true", "bash", "-gs",
		"--connect-timeout", "2", "--max-time", "4", "-H", "Connection: close", "-w", "\t%{url}\t%{errormsg}\n"}
	for _, r := range rows {
		args = append(args, slices.Repeat([]string{r.url}, r.times)...)
	}
	out, err := d.runKubectl(ctx, "", args...)
	seen := parseAnswers(string(out))
	for i, r := range rows {
		rows[i].seen = seen[r.url]
	}
	return err
}

// parseAnswers reads lines of answer, URL, error message, with tabs between, and returns the sources by URL.
func parseAnswers(text string) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 {
			continue
		}
		seen := noAnswer
		if from, err := netip.ParseAddrPort(fields[0]); err == nil {
			seen = from.Addr().Unmap().String()
		} else if fields[2] == "" {
			seen = "not an address: " + fields[0]
		}
		all[fields[1]] = append(all[fields[1]], seen)
	}
	return all
}

// judgeRows prints rows with their verdicts.
func (d *demo) judgeRows(rows []row) {
	w := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "POD\tNODE\tDESTINATION\tSOURCE SEEN THERE\tVERDICT")
	for _, r := range rows {
		verdict := r.verdictText()
		if verdict != "right" {
			d.wrong++
		}
		fmt.Fprintln(w, strings.Join([]string{r.pod, r.node, r.destination, r.seenText(), verdict}, "\t"))
	}
	_ = w.Flush() // of what the user sees
}

// verdictText says what is wrong, or "right".
func (r row) verdictText() string {
	right := 0
	for _, s := range r.seen {
		if slices.Contains(r.want, s) {
			right++
		} else if s != noAnswer || !r.mayMiss {
			right = 0
			break
		}
	}
	if right == 0 {
		return "WRONG: want " + strings.Join(r.want, " or ")
	}
	return "right"
}

// seenText lists what was seen, each with its number: "172.18.0.33 x5, 172.18.0.44 x3".
func (r row) seenText() string {
	count := map[string]int{}
	for _, s := range r.seen {
		count[s]++
	}
	var parts []string
	for _, s := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%s x%d", s, count[s]))
	}
	return strings.Join(parts, ", ")
}
