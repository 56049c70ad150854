package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/test/harness"
	"github.com/egret-net/egret/test/traffic"
)

// watchman is a site whose pods all leave with its egress IPs, and a capture of what they get out to the first host
// outside.
type watchman struct {
	*site
	seen  *traffic.Capture
	close []func()
}

// watchman sets one up. Whoever gets one has it leave.
func (l *lab) watchman(ctx context.Context, own bool) (*watchman, error) {
	s, err := l.site(ctx, spaceOf(own), 2)
	if err != nil {
		return nil, err
	}
	return s.watch(ctx)
}

// watch has a watchman come to a site.
func (s *site) watch(ctx context.Context) (*watchman, error) {
	w := &watchman{site: s}
	if err := w.begin(); err != nil {
		return nil, errors.Join(err, w.leave(ctx))
	}
	return w, nil
}

func (w *watchman) begin() error {
	swallowed, err := traffic.Swallow(w.outside.Name)
	if err != nil {
		return err
	}
	w.close = append(w.close, swallowed)
	if w.seen, err = traffic.Listen(w.Cluster.Cluster); err != nil {
		return err
	}
	w.close = append(w.close, w.seen.Close)
	return nil
}

// leave removes the watchman's pods and the site.
func (w *watchman) leave(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	for _, c := range w.close {
		c()
	}
	return errors.Join(w.RemovePods(ctx, w.space, senders), w.RemovePods(ctx, w.space, joinLabel),
		w.RemoveFakeNodes(ctx), w.site.clear(ctx))
}

// senders is the label of pods that send.
const senders = "bench-sender"

// sender is a pod that sends to the first host outside.
func (w *watchman) sender(name, node string) *corev1.Pod {
	return traffic.SenderPod(w.space, name, node, map[string]string{senders: ""},
		[]string{netip.AddrPortFrom(w.outside.IPs[0], traffic.Port).String()})
}

// arrived waits until datagrams of all these pods were seen after a time.
func (w *watchman) arrived(ctx context.Context, pods []*corev1.Pod, after time.Time) error {
	const enough = 5
	return harness.Until(ctx, 2*time.Minute, 100*time.Millisecond, func() error {
		seen := map[string]int{}
		for _, s := range w.seen.Since(after) {
			if s.Kind == "new" {
				seen[s.Pod]++
			}
		}
		for _, p := range pods {
			if seen[p.Name] < enough {
				return fmt.Errorf("%d datagrams of pod %s on %s", seen[p.Name], p.Name, p.Spec.NodeName)
			}
		}
		return nil
	})
}

// wrong counts the datagrams since the last time that had another source than the site's addresses, by pod. The capture
// forgets them.
func (w *watchman) wrong(l *lab, of string) (map[string]int, error) {
	out := map[string]int{}
	all := w.seen.Since(time.Time{})
	for who, n := range traffic.Wrong(all, "", w.ips) {
		var pod string
		if _, err := fmt.Sscan(who, &pod); err != nil {
			return nil, err
		}
		out[pod] += n
		l.say("%s: %d datagrams of %s: %s", of, n, who, numbers(all, pod, w.ips))
	}
	w.seen.Forget()
	return out, w.seen.Complete()
}

// numbers say which of a pod's datagrams had another source, and which was its last.
func numbers(all []traffic.Sighting, pod string, right []netip.Addr) string {
	var wrong []string
	last := map[string]int{}
	for _, s := range all {
		if s.Pod != pod {
			continue
		}
		if last[s.Kind] = s.Number; !slices.Contains(right, s.Src) {
			wrong = append(wrong, fmt.Sprintf("%s %d at %s", s.Kind, s.Number, s.At.Format("15:04:05.000")))
		}
	}
	return fmt.Sprintf("%v; its last were %v", wrong, last)
}

// gone waits until the watchman's senders have gone.
func (w *watchman) gone(ctx context.Context) error {
	return harness.Until(ctx, 2*time.Minute, 200*time.Millisecond, func() error {
		list, err := w.Core.CoreV1().Pods(w.space).List(ctx, metav1.ListOptions{LabelSelector: senders})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d pods are still there", len(list.Items))
		}
		return err
	})
}
