package probe

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// knocker asks kernels for TCP connections that nobody wants: acceptance and refusal both are a sign of the host. Hundreds a second are asked
// for, so that one thread waits for all answers, with one epoll.
type knocker struct {
	epoll    int
	answered func(x *peer, after time.Duration)

	mu      sync.Mutex
	last    int32
	pending map[int32]knock
}

// knock is one that was not answered yet; who takes it out of pending closes its socket.
type knock struct {
	fd    int
	x     *peer
	begin time.Time
}

func newKnocker(answered func(*peer, time.Duration)) (*knocker, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return &knocker{epoll: fd, answered: answered, pending: map[int32]knock{}}, nil
}

// knock asks once. An error, such as no route, is no answer.
func (k *knocker) knock(x *peer, to netip.AddrPort) {
	n := knock{x: x, begin: time.Now()}
	var err error
	if n.fd, err = unix.Socket(family(to), unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return
	}
	// Reset when closed: a connection that is closed in order would be remembered for a minute.
	_ = unix.SetsockoptLinger(n.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	if err = unix.Connect(n.fd, sockaddr(to)); errors.Is(err, unix.EINPROGRESS) {
		k.await(n)
		return
	}
	unix.Close(n.fd)
	if isAnswer(err) {
		k.answered(x, time.Since(n.begin))
	}
}

func isAnswer(err error) bool {
	return err == nil || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)
}

func family(a netip.AddrPort) int {
	if a.Addr().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
}

func (k *knocker) await(n knock) {
	k.mu.Lock()
	k.last++
	id := k.last
	k.pending[id] = n
	k.mu.Unlock()
	if err := unix.EpollCtl(k.epoll, unix.EPOLL_CTL_ADD, n.fd, &unix.EpollEvent{Events: unix.EPOLLOUT, Fd: id}); err != nil {
		k.take(id)
		unix.Close(n.fd)
	}
}

func (k *knocker) take(id int32) (knock, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, ok := k.pending[id]
	delete(k.pending, id)
	return n, ok
}

// run waits for answers until ctx is done.
func (k *knocker) run(ctx context.Context) {
	defer unix.Close(k.epoll)
	defer k.forget(time.Now().Add(time.Hour))
	events := make([]unix.EpollEvent, 64)
	for ctx.Err() == nil {
		n, err := unix.EpollWait(k.epoll, events, int(time.Second/time.Millisecond)) // to see that ctx is done
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		for _, e := range events[:max(n, 0)] {
			if n, ok := k.take(e.Fd); ok {
				k.end(n)
			}
		}
	}
}

func (k *knocker) end(n knock) {
	code, err := unix.GetsockoptInt(n.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	unix.Close(n.fd)
	if err == nil && (code == 0 || isAnswer(syscall.Errno(code))) {
		k.answered(n.x, time.Since(n.begin))
	}
}

// forget gives up those that were asked before a time.
func (k *knocker) forget(before time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, n := range k.pending {
		if n.begin.Before(before) {
			delete(k.pending, id)
			unix.Close(n.fd)
		}
	}
}
