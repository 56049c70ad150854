package demo

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

const (
	streamTime = 6 * time.Second // that pods go on connecting while an address moves
	moveTime   = 5 * time.Second // in which the network must have followed
	settleTime = 2 * time.Second // after which a controller that would move something has done so
)

// showPlaces shows where each address is: by the object's status, and by the neighbour table of a host outside.
func (d *demo) showPlaces(ctx context.Context) error {
	e, err := d.egressIP(ctx)
	if err != nil {
		return err
	}
	w, err := openWire(d.cluster.ExternalHosts()[0].Name, d.cluster.Nodes())
	if err != nil {
		return err
	}
	defer w.closeTable()
	var cells [][]string
	for _, i := range e.Status.Items {
		ip, err := netip.ParseAddr(i.EgressIP)
		if err != nil {
			return err
		}
		holder, err := w.holderOf(ip)
		if err != nil {
			return err
		}
		cells = append(cells, []string{i.EgressIP, i.Node, holder, d.judgePlace(i, holder)})
	}
	d.screen.printLine("")
	d.screen.printText(d.screen.renderTable([]string{"EGRESS IP", "NODE BY STATUS",
		"NODE THAT " + strings.ToUpper(w.host) + " SENDS TO", ""}, cells))
	return nil
}

func (d *demo) judgePlace(i v1.EgressIPStatusItem, holder string) string {
	if holder == i.Node {
		return "right"
	}
	d.wrong = append(d.wrong, fmt.Sprintf("%s: the status says %s, the network says %q", i.EgressIP, i.Node, holder))
	return "WRONG: want " + i.Node
}

// showMove labels the stand-by node, unlabels a node that hosts an address, and labels it again, with pods connecting
// meanwhile.
func (d *demo) showMove(ctx context.Context, p pods, standby string) error {
	before, err := d.egressIP(ctx)
	if err != nil {
		return err
	}
	left := before.Status.Items[0].Node
	d.screen.beginPart("One egress node more: nothing moves")
	if err := d.labelAndJudge(ctx, standby, before.Status.Items); err != nil {
		return err
	}
	d.screen.beginPart("Unlabel egress node " + left + ": its addresses move to " + standby)
	if err := d.moveUnderTraffic(ctx, p, before.Status.Items, left, standby); err != nil {
		return err
	}
	if err := d.showPlaces(ctx); err != nil {
		return err
	}
	if err := d.showTraffic(ctx, p, "What the servers see after the move"); err != nil {
		return err
	}
	after, err := d.egressIP(ctx)
	if err != nil {
		return err
	}
	d.screen.beginPart("Label " + left + " again: nothing moves")
	return d.labelAndJudge(ctx, left, after.Status.Items)
}

// labelAndJudge makes a node an egress node and judges that every address stays.
func (d *demo) labelAndJudge(ctx context.Context, node string, before []v1.EgressIPStatusItem) error {
	d.screen.printLine("kubectl label node %s %s=\"\"", node, assignableLabel)
	if err := d.labelNode(ctx, node, true); err != nil {
		return err
	}
	if err := sleepUnlessDone(ctx, settleTime); err != nil {
		return err
	}
	e, err := d.egressIP(ctx)
	if err != nil {
		return err
	}
	d.screen.printLine("status: %s", itemsText(e.Status.Items))
	if !slices.Equal(e.Status.Items, before) {
		d.wrong = append(d.wrong,
			fmt.Sprintf("after label of %s: status was %s, is %s", node, itemsText(before), itemsText(e.Status.Items)))
	}
	return nil
}

func itemsText(items []v1.EgressIPStatusItem) string {
	var texts []string
	for _, i := range items {
		texts = append(texts, i.EgressIP+" on "+i.Node)
	}
	return strings.Join(texts, ", ")
}

// moveUnderTraffic unlabels a node while the served pods connect to the first host all the time.
func (d *demo) moveUnderTraffic(ctx context.Context, p pods, before []v1.EgressIPStatusItem, left, to string) error {
	egressIPs, err := d.egressAddresses(ctx)
	if err != nil {
		return err
	}
	var samples []sample
	var rows []row
	stream, streamCtx := errgroup.WithContext(ctx)
	stream.Go(func() (err error) {
		samples, rows, err = d.streamConnections(streamCtx, p.served, egressIPs)
		return err
	})
	if err := sleepUnlessDone(ctx, time.Second); err != nil {
		return err
	}
	d.screen.printLine("kubectl label node %s %s-", left, assignableLabel)
	m, err := d.unlabelAndWait(ctx, left, to, movingAddresses(before, left))
	if err != nil {
		return err
	}
	if err := stream.Wait(); err != nil {
		return err
	}
	d.screen.printLine("status before: %s", itemsText(before))
	d.screen.printLine("status after:  %s", itemsText(m.after))
	d.screen.printLine("\nConnections of the served pods meanwhile:\n")
	d.screen.printText(d.screen.rowsTable(rows))
	d.judgeRows("while it moves", rows)
	d.reportMove(m, movingAddresses(before, left), samples)
	return nil
}

func movingAddresses(items []v1.EgressIPStatusItem, from string) []netip.Addr {
	var ips []netip.Addr
	for _, i := range items {
		if ip, err := netip.ParseAddr(i.EgressIP); err == nil && i.Node == from {
			ips = append(ips, ip)
		}
	}
	return ips
}

// movement is what was measured of a move.
type movement struct {
	to      string
	began   time.Time                // the label was taken away
	ready   time.Duration            // until the EgressIP was Ready on the nodes that are left
	arrived map[netip.Addr]time.Time // when the host outside knew the address at its new node; absent if it never did
	after   []v1.EgressIPStatusItem
}

// unlabelAndWait takes a node's label and waits until status and network have the addresses on the other node.
func (d *demo) unlabelAndWait(ctx context.Context, left, to string, ips []netip.Addr) (movement, error) {
	w, err := openWire(d.cluster.ExternalHosts()[0].Name, d.cluster.Nodes())
	if err != nil {
		return movement{}, err
	}
	defer w.closeTable()
	var staying []string
	for _, n := range d.cluster.Nodes() {
		if n.Name != left {
			staying = append(staying, n.Name)
		}
	}
	m := movement{to: to, began: time.Now()}
	if err := d.labelNode(ctx, left, false); err != nil {
		return m, err
	}
	var g errgroup.Group
	g.Go(func() (err error) { m.arrived, err = awaitArrivals(ctx, w, ips, to); return err })
	g.Go(func() error {
		e, err := d.awaitReady(ctx, staying)
		if err == nil {
			m.ready, m.after = time.Since(m.began), e.Status.Items
		}
		return err
	})
	err = g.Wait()
	return m, err
}

// awaitArrivals watches the neighbour table until all addresses are at the node, or moveTime has passed.
func awaitArrivals(ctx context.Context, w *wire, ips []netip.Addr, node string) (map[netip.Addr]time.Time, error) {
	arrived := map[netip.Addr]time.Time{}
	for deadline := time.Now().Add(moveTime); len(arrived) < len(ips) && time.Now().Before(deadline); {
		for _, ip := range ips {
			holder, err := w.holderOf(ip)
			if err != nil {
				return nil, err
			}
			if _, known := arrived[ip]; !known && holder == node {
				arrived[ip] = time.Now()
			}
		}
		if err := sleepUnlessDone(ctx, 5*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return arrived, nil
}

// reportMove prints the times of a move; one that did not happen is wrong.
func (d *demo) reportMove(m movement, ips []netip.Addr, samples []sample) {
	d.screen.printLine("\nAfter the label was taken away:")
	d.screen.printLine("  %8s  the EgressIP is Ready again", inMilliseconds(m.ready))
	for _, ip := range ips {
		if _, ok := m.arrived[ip]; !ok {
			d.wrong = append(d.wrong, fmt.Sprintf("the network does not have %s at %s after %s", ip, m.to, moveTime))
			continue
		}
		d.screen.printLine("  %8s  the network has %s at %s", inMilliseconds(m.arrived[ip].Sub(m.began)), ip, m.to)
		if first, ok := firstThrough(samples, ip, m.arrived[ip]); ok {
			d.screen.printLine("  %8s  the first new connection with it is answered",
				inMilliseconds(first.Sub(m.began)))
		} else {
			d.wrong = append(d.wrong, fmt.Sprintf("no new connection with %s through %s", ip, m.to))
		}
	}
}

func inMilliseconds(t time.Duration) string { return strconv.FormatInt(t.Milliseconds(), 10) + " ms" }

// sample is one connection of a stream.
type sample struct {
	began, ended time.Time
	url          string
	answer       answer
}

// firstThrough is when the first connection with this source that began after a moment was answered.
func firstThrough(samples []sample, source netip.Addr, after time.Time) (time.Time, bool) {
	var first time.Time
	for _, s := range samples {
		if s.answer.source == source && s.began.After(after) && (first.IsZero() || s.ended.Before(first)) {
			first = s.ended
		}
	}
	return first, !first.IsZero()
}

// streamConnections lets all pods connect to the first host, one connection after the other, for streamTime.
func (d *demo) streamConnections(ctx context.Context, served []corev1.Pod, egressIPs []netip.Addr) ([]sample, []row,
	error) {
	host := d.cluster.ExternalHosts()[0]
	perPod := make([][]sample, len(served))
	g, ctx := errgroup.WithContext(ctx)
	for i, p := range served {
		g.Go(func() (err error) { perPod[i], err = d.streamOf(ctx, p, host.IPs); return err })
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	var rows []row
	for i, p := range served {
		for _, ip := range host.IPs {
			t := target{name: host.Name, ip: ip, want: ofFamily(egressIPs, ip)}
			r := t.rowFor(p)
			r.mayMiss = true
			for _, s := range perPod[i] {
				if s.url == t.clientURL() {
					r.answers = append(r.answers, s.answer)
				}
			}
			rows = append(rows, r)
		}
	}
	return slices.Concat(perPod...), rows, nil
}

// streamScript connects again and again; the time is before and after each connection, in seconds. The pause keeps two
// cores from being busy with starting curl alone.
const streamScript = `seconds=$1; shift
while ((SECONDS < seconds)); do
  for url; do
    began=$EPOCHREALTIME
    answer=$(curl -gs --connect-timeout 1 --max-time 2 -w '\t%{url}\t%{errormsg}' "$url")
    printf '%s\t%s\t%s\n' "$began" "$EPOCHREALTIME" "$answer"
    sleep 0.02
  done
done`

func (d *demo) streamOf(ctx context.Context, p corev1.Pod, hosts []netip.Addr) ([]sample, error) {
	args := []string{"bash", "-c", streamScript, "stream", strconv.Itoa(int(streamTime.Seconds()))}
	for _, ip := range hosts {
		args = append(args, target{ip: ip}.clientURL())
	}
	out, err := d.execIn(ctx, p, args...)
	if err != nil {
		return nil, err
	}
	return parseSamples(string(out))
}

func parseSamples(text string) ([]sample, error) {
	var all []sample
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 5 {
			return nil, fmt.Errorf("a line of a stream is not begin, end, answer, URL, error: %q", line)
		}
		began, err := parseTime(fields[0])
		if err != nil {
			return nil, err
		}
		ended, err := parseTime(fields[1])
		if err != nil {
			return nil, err
		}
		all = append(all, sample{began, ended, fields[3], parseAnswer(fields[2], fields[4])})
	}
	return all, nil
}

// parseTime reads bash's EPOCHREALTIME: seconds, a point, six digits.
func parseTime(text string) (time.Time, error) {
	microseconds, err := strconv.ParseInt(strings.Replace(text, ".", "", 1), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("time of a stream: %w", err)
	}
	return time.UnixMicro(microseconds), nil
}
