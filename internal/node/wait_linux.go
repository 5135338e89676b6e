package node

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// epollWaiter waits in the kernel, where a time-out is a matter of microseconds
// and the arrival of a datagram wakes the loop's own thread.
type epollWaiter struct {
	bell   doorbell
	fed    feeds
	epoll  int
	timer  int // timerfd, -1 as long as epoll_pwait2 works
	events [64]unix.EpollEvent
	limit  unix.Timespec    // of the sleep under way
	added  map[int]*watched // by descriptor
	err    error            // of WantWrite, for the next Wait

	mu     sync.Mutex // a ring that has to wake, against Close
	bellFD int
	closed bool
}

// watched is a descriptor in the epoll set.
type watched struct {
	token int
	write bool
}

// Tokens of the waiter's own descriptors.
const (
	tokenBell  = -1
	tokenTimer = -2
)

func newWaiter(kind waiterKind) (waiter, error) {
	if kind == waitFed {
		return newFeedWaiter(), nil
	}
	return newEpollWaiter()
}

func newEpollWaiter() (*epollWaiter, error) {
	w := &epollWaiter{timer: -1, bellFD: -1, added: map[int]*watched{}}
	var err error
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("node: %w", os.NewSyscallError("epoll_create1", err))
	}
	w.bellFD, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err == nil {
		// Edge-triggered: each write is an event, and none has to be read.
		err = w.control(unix.EPOLL_CTL_ADD, w.bellFD, tokenBell, unix.EPOLLIN|unix.EPOLLET)
	}
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("node: doorbell: %w", err)
	}
	return w, nil
}

func (w *epollWaiter) control(op, fd, token int, events uint32) error {
	e := unix.EpollEvent{Events: events, Fd: int32(token)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(w.epoll, op, fd, &e))
}

// Add implements waiter.
func (w *epollWaiter) Add(fd, token int) error {
	err := w.control(unix.EPOLL_CTL_ADD, fd, token, unix.EPOLLIN)
	if at := w.added[fd]; errors.Is(err, unix.EEXIST) && at != nil && at.token != token {
		err = w.control(unix.EPOLL_CTL_MOD, fd, token, unix.EPOLLIN)
	}
	if err != nil {
		return fmt.Errorf("node: device %d: %w", token, err)
	}
	w.added[fd] = &watched{token: token}
	return nil
}

// Feed implements waiter.
func (w *epollWaiter) Feed(token int) func() { return w.fed.add(token, w.Ring) }

// WantWrite implements waiter.
func (w *epollWaiter) WantWrite(fd int, want bool) {
	at := w.added[fd]
	if at == nil || at.write == want {
		return
	}
	events := uint32(unix.EPOLLIN)
	if want {
		events |= unix.EPOLLOUT
	}
	at.write = want
	if err := w.control(unix.EPOLL_CTL_MOD, fd, at.token, events); err != nil && w.err == nil {
		w.err = fmt.Errorf("node: device %d: %w", at.token, err)
	}
}

// Wait implements waiter.
func (w *epollWaiter) Wait(timeout time.Duration, ready []int) ([]int, error) {
	if timeout != 0 {
		// The goroutines that the loop has just woken are queued behind it.
		// One asleep in the kernel would keep them there for up to 10 ms
		// while the other processors are busy, so they go first.
		runtime.Gosched()
		if !w.bell.sleep() {
			timeout = 0
		}
	}
	n, errno := w.sleep(timeout)
	w.bell.wake()
	if errno != 0 && errno != unix.EINTR {
		return ready, fmt.Errorf("node: %w", os.NewSyscallError("epoll_pwait", errno))
	}
	for i := range max(0, n) {
		if token := int(w.events[i].Fd); token >= 0 {
			ready = append(ready, token)
		}
	}
	return w.fed.take(ready), w.err
}

// sleep waits for events. A thread's timers may fire 50 µs late for the sake of
// power unless it asks for better, and the loop has no thread of its own, so it
// asks every time: a tenth of a microsecond.
func (w *epollWaiter) sleep(timeout time.Duration) (int, unix.Errno) {
	if timeout == 0 {
		return w.poll()
	}
	if w.timer >= 0 {
		return w.sleepTimer(timeout)
	}
	var limit *unix.Timespec
	if timeout > 0 {
		w.limit = unix.NsecToTimespec(int64(timeout))
		limit = &w.limit
		_, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, 1, 0)
	}
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(w.epoll),
		uintptr(unsafe.Pointer(&w.events)), uintptr(len(w.events)),
		uintptr(unsafe.Pointer(limit)), 0, 0)
	if errno == unix.ENOSYS && w.useTimer() == nil {
		return w.sleepTimer(timeout)
	}
	return int(n), errno
}

// poll looks without waiting: nothing that the scheduler need know of.
func (w *epollWaiter) poll() (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(w.epoll),
		uintptr(unsafe.Pointer(&w.events)), uintptr(len(w.events)), 0, 0, 0)
	return int(n), errno
}

// useTimer turns to a timerfd for precision: epoll_pwait2 came with Linux 5.11.
func (w *epollWaiter) useTimer() error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return err
	}
	w.timer = fd
	return w.control(unix.EPOLL_CTL_ADD, fd, tokenTimer, unix.EPOLLIN|unix.EPOLLET)
}

// sleepTimer is sleep with the timerfd. One that fires after its sleep was over
// ends a later one for nothing.
func (w *epollWaiter) sleepTimer(timeout time.Duration) (int, unix.Errno) {
	limit := -1 // milliseconds
	if timeout > 0 {
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(timeout))}
		if err := unix.TimerfdSettime(w.timer, 0, &spec, nil); err != nil {
			limit = int(min(timeout/time.Millisecond+1, math.MaxInt32))
		}
	}
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(w.epoll),
		uintptr(unsafe.Pointer(&w.events)), uintptr(len(w.events)), uintptr(limit), 0, 0)
	return int(n), errno
}

// Ring implements waiter.
func (w *epollWaiter) Ring() {
	if w.bell.ring() {
		w.knock()
	}
}

// knock wakes the loop. The counter of an eventfd would overflow after 2^64
// knocks; any other failure is a descriptor that we do not have.
func (w *epollWaiter) knock() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	one := uint64(1)
	_, _, errno := unix.Syscall(unix.SYS_WRITE, uintptr(w.bellFD),
		uintptr(unsafe.Pointer(&one)), unsafe.Sizeof(one))
	if errno != 0 {
		panic("BUG: node: doorbell: " + errno.Error())
	}
}

// Close implements waiter.
func (w *epollWaiter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	for _, fd := range []int{w.epoll, w.bellFD, w.timer} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	return nil
}
