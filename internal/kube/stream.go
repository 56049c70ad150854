package kube

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// stream is what a table's reflector has under way with the API server: a list, or a watch.
type stream struct {
	tries atomic.Uint64 // requests that have begun, and parts of lists that have come

	mu     sync.Mutex
	stop   func()
	relist bool // the next request is for a consistent list
}

// beginRequest notes a request, which lasts until stop is called. The previous request is over by then.
func (s *stream) beginRequest(ctx context.Context) (under context.Context, stop context.CancelFunc) {
	s.stopCurrent()
	under, stop = context.WithCancel(ctx)
	s.setStop(stop)
	return under, stop
}

// setStop notes what ends the present request.
func (s *stream) setStop(stop func()) {
	s.tries.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = stop
}

func (s *stream) stopCurrent() {
	s.mu.Lock()
	stop := s.stop
	s.stop = nil
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// endCurrent ends what is under way. A list follows, which is a consistent read: the API server's cache may stand
// still.
func (s *stream) endCurrent() {
	s.mu.Lock()
	s.relist = true
	s.mu.Unlock()
	s.stopCurrent()
}

func (s *stream) mustList() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.relist
}

// noteList notes that a list has come.
func (s *stream) noteList() {
	s.tries.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relist = false
}

// noObject is the name of no object.
const noObject = "egret-none"

// askForBookmark has the API server find out how far etcd is with a kind, by a consistent read of an object that does
// not exist. It does not wait.
func (s *Source) askForBookmark(k Kind) {
	if s.clients == nil {
		return
	}
	nothing := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(fieldName, noObject).String()}
	request := s.clients.ListRequest(k, metav1.NamespaceAll).VersionedParams(&nothing, metav1.ParameterCodec)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = request.Do(ctx).Error() // else the watch is ended soon
	}()
}
