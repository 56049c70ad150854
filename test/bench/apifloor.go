package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// floorLabel is on the objects of apiFloor.
const floorLabel = "bench-floor"

// apiFloor is the least that passes from an object's creation until a node knows what was decided about it, in
// milliseconds: whoever decides sees the object and writes to it, and a watcher sees that. The object is a ConfigMap,
// which has no admission policy and no schema, and nothing is thought about in between.
func (c *cluster) apiFloor(ctx context.Context, runs int) (float64, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	maps := c.Core.CoreV1().ConfigMaps(namespace)
	created, err := maps.Watch(ctx, metav1.ListOptions{LabelSelector: floorLabel})
	if err != nil {
		return 0, err
	}
	decided, err := maps.Watch(ctx, metav1.ListOptions{LabelSelector: floorLabel})
	if err != nil {
		return 0, err
	}
	go func() {
		for e := range created.ResultChan() {
			if o, is := e.Object.(*corev1.ConfigMap); is && e.Type == watch.Added {
				_, _ = maps.Patch(ctx, o.Name, types.MergePatchType, []byte(`{"data":{"node":"n"}}`), metav1.PatchOptions{})
			}
		}
	}()
	var s sample
	for i := range runs {
		name, begin := fmt.Sprint("floor-", i), time.Now()
		labels := map[string]string{floorLabel: ""}
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}},
			metav1.CreateOptions{})
		if err == nil {
			err = modified(ctx, decided)
		}
		if err != nil {
			return 0, err
		}
		s.addTime(time.Since(begin))
		if err := maps.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return 0, err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return s.median(), nil
}

// modified waits until a watch shows that an object has changed.
func modified(ctx context.Context, w watch.Interface) error {
	for {
		select {
		case e, open := <-w.ResultChan():
			if !open {
				return fmt.Errorf("the watch for %s ended", floorLabel)
			}
			if e.Type == watch.Modified {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
