package probe

import (
	"errors"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// knocker asks kernels for TCP connections that nobody wants: acceptance and refusal both are a sign of the host.
// Hundreds a second are asked for; their answers are collected all at once now and then, for to wake up for each cost
// as much again. It belongs to the Prober's loop.
type knocker struct {
	patience time.Duration
	pending  []knock
}

// answer is one of a kernel's.
type answer struct {
	from  netip.Addr // this host's address, of the connection; none if the answer came at once
	after time.Duration
}

// knock is one that was not answered yet. To end it, close its socket.
type knock struct {
	fd       int
	answered func(answer)
	from     netip.Addr
	begin    time.Time
}

// knockAt asks once. For the knock that is timed, a goroutine of its own waits for the answer. An error, such as no
// route, is no answer.
func (k *knocker) knockAt(to netip.AddrPort, timed bool, answered func(answer)) {
	n := knock{answered: answered, begin: time.Now()}
	var err error
	if n.fd, err = unix.Socket(addressFamily(to), unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC,
		0); err != nil {
		return
	}
	// Reset when closed: a connection that is closed in order would be remembered for a minute.
	_ = unix.SetsockoptLinger(n.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	err = unix.Connect(n.fd, toSockaddr(to))
	n.from = localAddr(n.fd)
	switch {
	case errors.Is(err, unix.EINPROGRESS) && timed:
		go k.awaitAnswer(n)
	case errors.Is(err, unix.EINPROGRESS):
		k.pending = append(k.pending, n)
	default:
		unix.Close(n.fd)
		if isAnswer(err) {
			n.reportAnswer()
		}
	}
}

// localAddr is the address that the kernel chose for a connection.
func localAddr(fd int) netip.Addr {
	switch a, _ := unix.Getsockname(fd); a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(a.Addr)
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(a.Addr)
	}
	return netip.Addr{}
}

func (n knock) reportAnswer() { n.answered(answer{n.from, time.Since(n.begin)}) }

func isAnswer(err error) bool {
	return err == nil || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)
}

func addressFamily(a netip.AddrPort) int {
	if a.Addr().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func toSockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
}

// collectAnswers takes the answers that have come, and gives up what has waited for too long.
func (k *knocker) collectAnswers(now time.Time) {
	fds := make([]unix.PollFd, len(k.pending))
	for i, n := range k.pending {
		fds[i] = unix.PollFd{Fd: int32(n.fd), Events: unix.POLLOUT}
	}
	_, _ = unix.Poll(fds, 0) // an error is no answer
	waiting := k.pending[:0]
	for i, n := range k.pending {
		switch {
		case fds[i].Revents != 0:
			if n.hasKernelAnswer() {
				n.reportAnswer()
			}
		case now.Sub(n.begin) >= k.patience:
			unix.Close(n.fd)
		default:
			waiting = append(waiting, n)
		}
	}
	k.pending = waiting
}

// awaitAnswer waits for one answer.
func (k *knocker) awaitAnswer(n knock) {
	deadline := n.begin.Add(k.patience)
	fds := []unix.PollFd{{Fd: int32(n.fd), Events: unix.POLLOUT}}
	_, err := unix.Poll(fds, int(k.patience.Milliseconds()))
	for errors.Is(err, unix.EINTR) && time.Now().Before(deadline) {
		_, err = unix.Poll(fds, max(0, int(time.Until(deadline).Milliseconds()))) // a negative one would wait for ever
	}
	if fds[0].Revents == 0 {
		unix.Close(n.fd)
	} else if n.hasKernelAnswer() {
		n.reportAnswer()
	}
}

// hasKernelAnswer says whether the kernel at the other end answered.
func (n knock) hasKernelAnswer() bool {
	code, err := unix.GetsockoptInt(n.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	unix.Close(n.fd)
	return err == nil && (code == 0 || isAnswer(syscall.Errno(code)))
}

// closeAll gives up all.
func (k *knocker) closeAll() {
	for _, n := range k.pending {
		unix.Close(n.fd)
	}
	k.pending = nil
}
