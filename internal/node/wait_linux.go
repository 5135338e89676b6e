package node

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// epollWaiter waits in the kernel, where a time-out is a matter of microseconds
// and the arrival of a datagram wakes the loop's own thread.
//
// Two may wait at once, in the two places of Wait and Lead. So that a datagram wakes one of them,
// a descriptor that was reported is silent (EPOLLONESHOT) until its owner gives up what it owns,
// and has it read by then; and of two who wait the kernel wakes the one who came last.
type epollWaiter struct {
	bell  doorbell
	fed   feeds
	epoll int
	timer int // timerfd, -1 as long as epoll_pwait2 works

	// The owner's.
	added  map[int]*watched // by descriptor
	silent []int            // descriptors
	err    error            // of epoll_ctl, for the next Wait
	polled events

	loop, leader sleeper
	seat         atomic.Uint32 // the leader's
	left         chan struct{} // a token: who was dismissed has left it

	mu      sync.Mutex // who wakes, against Close; and missed
	bellFD  int
	closed  bool
	missed  []unix.EpollEvent // by one who could not become the owner
	skipped atomic.Bool       // there are some
}

// sleeper is what one who waits tells the kernel, and is told.
type sleeper struct {
	events events
	limit  unix.Timespec // of the sleep under way
}

// The states of the leader's seat.
const (
	empty = iota
	seated
	dismissed
)

type events [64]unix.EpollEvent

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
	w := &epollWaiter{
		timer: -1, bellFD: -1, added: map[int]*watched{}, left: make(chan struct{}, 1),
	}
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
	e := unix.EpollEvent{Events: events, Fd: int32(fd), Pad: int32(token)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(w.epoll, op, fd, &e))
}

// Add implements waiter.
func (w *epollWaiter) Add(fd, token int) error {
	err := w.control(unix.EPOLL_CTL_ADD, fd, token, unix.EPOLLIN|unix.EPOLLONESHOT)
	if at := w.added[fd]; errors.Is(err, unix.EEXIST) && at != nil && at.token != token {
		err = w.control(unix.EPOLL_CTL_MOD, fd, token, unix.EPOLLIN|unix.EPOLLONESHOT)
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
	if at := w.added[fd]; at != nil && at.write != want {
		at.write = want
		w.listen(fd, at)
	}
}

// listen has a descriptor reported again, at once if it is ready still. One that was closed is
// nobody's any more.
func (w *epollWaiter) listen(fd int, at *watched) {
	events := uint32(unix.EPOLLIN | unix.EPOLLONESHOT)
	if at.write {
		events |= unix.EPOLLOUT
	}
	err := w.control(unix.EPOLL_CTL_MOD, fd, at.token, events)
	gone := errors.Is(err, unix.EBADF) || errors.Is(err, unix.ENOENT)
	if err != nil && !gone && w.err == nil {
		w.err = fmt.Errorf("node: device %d: %w", at.token, err)
	}
}

// listenAgain has everything reported again that was.
func (w *epollWaiter) listenAgain() {
	for _, fd := range w.silent {
		w.listen(fd, w.added[fd])
	}
	w.silent = w.silent[:0]
}

// Wait implements waiter.
func (w *epollWaiter) Wait(timeout time.Duration, ready []int) ([]int, error) {
	w.listenAgain()
	if timeout == 0 || !w.bell.sleep() {
		return w.poll(ready)
	}
	// The goroutines that the loop has just woken are queued behind it.
	// One asleep in the kernel would keep them there for up to 10 ms
	// while the other processors are busy, so they go first.
	runtime.Gosched()
	for {
		n, errno := w.sleep(timeout)
		list := w.loop.events[:max(0, n)]
		if w.bell.enter() {
			return w.report(list, ready), w.failed(errno)
		}
		w.pass(list)
		timeout = again
	}
}

func (w *epollWaiter) failed(errno unix.Errno) error {
	if errno != 0 && errno != unix.EINTR {
		return fmt.Errorf("node: %w", os.NewSyscallError("epoll_pwait", errno))
	}
	return w.err
}

// report adds the tokens of events, and of those that others have missed, to ready.
func (w *epollWaiter) report(list []unix.EpollEvent, ready []int) []int {
	ready = w.silence(list, ready)
	if w.skipped.Load() { // or else no lock: who rings holds it in the call that wakes
		w.mu.Lock()
		ready = w.silence(w.missed, ready)
		w.missed = w.missed[:0]
		w.skipped.Store(false)
		w.mu.Unlock()
	}
	return w.fed.take(ready)
}

func (w *epollWaiter) silence(list []unix.EpollEvent, ready []int) []int {
	for i := range list {
		if e := &list[i]; e.Pad >= 0 {
			w.silent = append(w.silent, int(e.Fd))
			ready = append(ready, int(e.Pad))
		}
	}
	return ready
}

// pass leaves events to who is the owner, and rings.
func (w *epollWaiter) pass(list []unix.EpollEvent) {
	if len(list) == 0 {
		return // enter has rung
	}
	w.mu.Lock()
	w.missed = append(w.missed, list...)
	w.skipped.Store(true)
	w.mu.Unlock()
	w.Ring()
}

// Free implements second.
func (w *epollWaiter) Free() bool { return w.bell.free() }

// Lead implements second.
func (w *epollWaiter) Lead(timeout time.Duration, ready []int) ([]int, bool) {
	w.listenAgain()
	w.seat.Store(seated)
	if !w.bell.sleep() {
		w.seat.Store(empty)
		ready, _ = w.poll(ready)
		return ready, true
	}
	n, _ := w.sleepAt(&w.leader, timeout)
	list := w.leader.events[:max(0, n)]
	if !w.seat.CompareAndSwap(seated, empty) {
		w.pass(list)
		w.seat.Store(empty)
		w.left <- struct{}{}
		return ready, false
	}
	if w.bell.enter() {
		return w.report(list, ready), true
	}
	w.pass(list)
	return ready, false
}

// Dismiss implements second. What it wakes is the leader, for the loop does not wait beside him.
func (w *epollWaiter) Dismiss() {
	if w.seat.CompareAndSwap(seated, dismissed) {
		w.Call()
		<-w.left
	}
}

// sleep waits for events in the loop's seat. A thread's timers may fire 50 µs late for the sake of
// power unless it asks for better, and the loop has no thread of its own, so it
// asks every time: a tenth of a microsecond.
func (w *epollWaiter) sleep(timeout time.Duration) (int, unix.Errno) {
	if timeout > 0 && w.timer >= 0 {
		return w.sleepTimer(timeout)
	}
	if timeout > 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, 1, 0)
	}
	n, errno := w.sleepAt(&w.loop, timeout)
	if errno == unix.ENOSYS && w.useTimer() == nil {
		return w.sleep(timeout)
	}
	return n, errno
}

// sleepAt waits for events in a seat, as punctually as the kernel likes.
func (w *epollWaiter) sleepAt(p *sleeper, timeout time.Duration) (int, unix.Errno) {
	if w.timer >= 0 {
		limit := -1 // milliseconds
		if timeout >= 0 {
			limit = int(min((timeout+time.Millisecond-1)/time.Millisecond, math.MaxInt32))
		}
		n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(w.epoll),
			uintptr(unsafe.Pointer(&p.events)), uintptr(len(p.events)), uintptr(limit), 0, 0)
		return int(n), errno
	}
	var limit *unix.Timespec
	if timeout >= 0 {
		p.limit = unix.NsecToTimespec(int64(timeout))
		limit = &p.limit
	}
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(w.epoll),
		uintptr(unsafe.Pointer(&p.events)), uintptr(len(p.events)),
		uintptr(unsafe.Pointer(limit)), 0, 0)
	return int(n), errno
}

// poll looks without waiting: nothing that the scheduler need know of.
func (w *epollWaiter) poll(ready []int) ([]int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(w.epoll),
		uintptr(unsafe.Pointer(&w.polled)), uintptr(len(w.polled)), 0, 0, 0)
	w.bell.look()
	return w.report(w.polled[:max(0, int(n))], ready), w.failed(errno)
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
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(timeout))}
	if unix.TimerfdSettime(w.timer, 0, &spec, nil) == nil {
		timeout += time.Millisecond // for who looks in beside us may be told of it instead
	}
	return w.sleepAt(&w.loop, timeout)
}

// Ring implements waiter.
func (w *epollWaiter) Ring() {
	if w.bell.ring() {
		w.Call()
	}
}

// Enter implements waiter.
func (w *epollWaiter) Enter() bool { return w.bell.enter() }

// Yield implements waiter.
func (w *epollWaiter) Yield() bool {
	w.listenAgain()
	return w.bell.sleep()
}

// Leave implements waiter.
func (w *epollWaiter) Leave() {
	w.listenAgain()
	w.bell.leave()
	w.Call()
}

// Call implements second. The counter of an eventfd would overflow after 2^64
// knocks; any other failure is a descriptor that we do not have.
func (w *epollWaiter) Call() {
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
	w.Dismiss()
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
