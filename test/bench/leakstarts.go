package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// together are the pods that start at one time.
const together = 10

// leaksAtStart starts pods that send from their first instruction on, ten at a time on all nodes, ten a run, and counts
// for each the datagrams that left the cluster with a source other than an egress IP.
func leaksAtStart(ctx context.Context, l *lab) error { return l.startsLeak(ctx, "pod-starts", false) }

// leaksAtOwnStart does the same with pods of a network of their own.
func leaksAtOwnStart(ctx context.Context, l *lab) error {
	return l.startsLeak(ctx, "pod-starts-own-network", true)
}

func (l *lab) startsLeak(ctx context.Context, name string, own bool) (err error) {
	w, err := l.watchman(ctx, own)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.leave(ctx)) }()
	return l.countLeaks(name, w, func(i int, leaked func(float64)) error {
		return w.startPods(ctx, l, i, leaked)
	})
}

// countLeaks counts the datagrams that got out with another source.
func (l *lab) countLeaks(of string, w *watchman, run func(i int, leaked func(float64)) error) error {
	const figure = "datagrams-with-another-source"
	_, err := l.repeat(experiment{"leaks/" + of + "/" + w.probe(), []result{{name: figure, none: true}},
		func(i int, t tally) error { return run(i, func(n float64) { t.add(figure, n) }) }})
	return err
}

// startPods is one batch, from no pod to no pod.
func (w *watchman) startPods(ctx context.Context, l *lab, run int, leaked func(float64)) error {
	var pods []*corev1.Pod
	for i := range together {
		pods = append(pods, w.sender(fmt.Sprintf("start-%d-%d", run, i), w.Nodes()[i%len(w.Nodes())].Name))
	}
	begin := time.Now()
	if err := w.CreatePods(ctx, pods); err != nil {
		return err
	}
	if err := w.arrived(ctx, pods, begin); err != nil {
		return err
	}
	if err := errors.Join(w.RemovePods(ctx, w.space, senders), w.gone(ctx)); err != nil {
		return err
	}
	wrong, err := w.wrong(l, fmt.Sprint("leaks/pod-starts run ", run))
	for _, p := range pods {
		leaked(float64(wrong[p.Name]))
	}
	return err
}
