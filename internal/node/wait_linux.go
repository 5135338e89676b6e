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

// epollWaiter waits in the kernel, where timeouts are precise to microseconds and a datagram wakes
// up the loop's own thread.
//
// Two goroutines can wait at once, in Wait and in Lead. After another goroutine has entered, a
// descriptor is reported only once (EPOLLONESHOT), so that only one of the two wakes up, until the
// owner has read it and gives up the stack. If both wait, the kernel wakes up the one that came
// last.
type epollWaiter struct {
	feeds
	bell  doorbell
	epoll int
	timer int // timer's descriptor (timerfd); -1 while epoll_pwait2 works

	// Only the owner uses these fields.
	added  map[int]*watched // watched descriptors, by number
	once   uint32           // EPOLLONESHOT, or 0 before the first Enter
	silent []int            // descriptors that were reported
	err    error            // error of epoll_ctl, which the next Wait returns
	polled events
	quiet  bool // the loop has called Quiet

	loop, leader sleeper
	slot         atomic.Uint32 // state of the second slot
	left         chan struct{} // receives a token when the dismissed leader has returned

	mu      sync.Mutex // protects missed and closed
	bellFD  int
	closed  bool
	missed  []unix.EpollEvent // events of a goroutine that could not become the owner
	skipped atomic.Bool       // missed is not empty
}

// sleeper holds the arguments and results of a wait in the kernel.
type sleeper struct {
	events events
	limit  unix.Timespec // current timeout
}

// These are the states of the second slot.
const (
	empty = iota
	occupied
	dismissed
)

type events [64]unix.EpollEvent

// watched is a descriptor in the epoll set.
type watched struct {
	token  int
	events uint32
	silent bool // the descriptor was reported and is not rearmed yet
}

// These are the tokens of the waiter's own descriptors.
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
		// The descriptor is edge-triggered: each write is an event, and need not be read.
		err = w.control(unix.EPOLL_CTL_ADD, w.bellFD, tokenBell, unix.EPOLLIN|unix.EPOLLET)
	}
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("node: eventfd: %w", err)
	}
	return w, nil
}

func (w *epollWaiter) control(op, fd, token int, events uint32) error {
	e := unix.EpollEvent{Events: events, Fd: int32(fd), Pad: int32(token)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(w.epoll, op, fd, &e))
}

func (w *epollWaiter) Add(fd, token int) error {
	err := w.control(unix.EPOLL_CTL_ADD, fd, token, unix.EPOLLIN|w.once)
	if at := w.added[fd]; errors.Is(err, unix.EEXIST) && at != nil && at.token != token {
		err = w.control(unix.EPOLL_CTL_MOD, fd, token, unix.EPOLLIN|w.once)
	}
	if err != nil {
		return fmt.Errorf("node: device %d: %w", token, err)
	}
	w.added[fd] = &watched{token: token, events: unix.EPOLLIN}
	return nil
}

func (w *epollWaiter) WantWrite(fd int, want bool) {
	events := uint32(unix.EPOLLIN)
	if want {
		events |= unix.EPOLLOUT
	}
	w.want(fd, events)
}

// want sets the events of a descriptor. The kernel always reports errors.
func (w *epollWaiter) want(fd int, events uint32) {
	at := w.added[fd]
	if at == nil || at.events == events {
		return
	}
	at.events = events
	if !at.silent { // if silent, Wait rearms the descriptor
		w.listen(fd, at)
	}
}

// forget ends the reports of a descriptor.
func (w *epollWaiter) forget(fd int) {
	if w.added[fd] != nil {
		delete(w.added, fd)
		_ = w.control(unix.EPOLL_CTL_DEL, fd, 0, 0) // the descriptor may be closed
	}
}

// listen makes the kernel report a descriptor again, at once if it is still ready. It ignores
// closed descriptors.
func (w *epollWaiter) listen(fd int, at *watched) {
	err := w.control(unix.EPOLL_CTL_MOD, fd, at.token, at.events|w.once)
	gone := errors.Is(err, unix.EBADF) || errors.Is(err, unix.ENOENT)
	if err != nil && !gone && w.err == nil {
		w.err = fmt.Errorf("node: device %d: %w", at.token, err)
	}
}

// listenAgain rearms all descriptors that were reported.
func (w *epollWaiter) listenAgain() {
	for _, fd := range w.silent {
		if at := w.added[fd]; at != nil {
			at.silent = false
			w.listen(fd, at)
		}
	}
	w.silent = w.silent[:0]
}

func (w *epollWaiter) Wait(timeout time.Duration, ready []int) ([]int, error) {
	w.listenAgain()
	if timeout == 0 || !w.bell.sleep() {
		return w.poll(ready)
	}
	// The goroutines that the loop has just woken up are queued on its CPU. If the loop blocked in
	// the kernel, they would wait for up to 10 ms while the other CPUs are busy. So the loop lets
	// them run first. Gosched also wakes up an idle thread, so it is called only if there is a
	// reason.
	if !w.quiet {
		runtime.Gosched()
	}
	w.quiet = false
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

// report appends the tokens of events, and of events that other goroutines could not handle.
func (w *epollWaiter) report(list []unix.EpollEvent, ready []int) []int {
	ready = w.silence(list, ready)
	if w.skipped.Load() { // avoids the lock, which a ringing goroutine may hold for a long time
		w.mu.Lock()
		ready = w.silence(w.missed, ready)
		w.missed = w.missed[:0]
		w.skipped.Store(false)
		w.mu.Unlock()
	}
	return w.Fed(ready)
}

func (w *epollWaiter) silence(list []unix.EpollEvent, ready []int) []int {
	for i := range list {
		if e := &list[i]; e.Pad >= 0 {
			if at := w.added[int(e.Fd)]; at != nil && w.once != 0 {
				at.silent = true
				w.silent = append(w.silent, int(e.Fd))
			}
			ready = append(ready, int(e.Pad))
		}
	}
	return ready
}

// pass leaves events to the owner and rings.
func (w *epollWaiter) pass(list []unix.EpollEvent) {
	if len(list) == 0 {
		return // enter has already rung
	}
	w.mu.Lock()
	w.missed = append(w.missed, list...)
	w.skipped.Store(true)
	w.mu.Unlock()
	w.Ring()
}

func (w *epollWaiter) Free() bool { return w.bell.free() }

func (w *epollWaiter) Quiet() { w.quiet = true }

func (w *epollWaiter) Lead(timeout time.Duration, ready []int) ([]int, bool) {
	w.listenAgain()
	w.slot.Store(occupied)
	if !w.bell.sleep() {
		w.slot.Store(empty)
		ready, _ = w.poll(ready)
		return ready, true
	}
	n, _ := w.sleepAt(&w.leader, timeout)
	list := w.leader.events[:max(0, n)]
	if !w.slot.CompareAndSwap(occupied, empty) {
		w.pass(list)
		w.slot.Store(empty)
		w.left <- struct{}{}
		return ready, false
	}
	if w.bell.enter() {
		return w.report(list, ready), true
	}
	w.pass(list)
	return ready, false
}

// Dismiss implements leaderWaiter. Call wakes up the leader and not the loop, because the loop,
// which calls Dismiss, is not in Wait.
func (w *epollWaiter) Dismiss() {
	if w.slot.CompareAndSwap(occupied, dismissed) {
		w.Call()
		<-w.left
	}
}

// sleep waits for events in the loop's slot. By default the kernel may delay a thread's timers by
// 50 µs to save power. The loop has no thread of its own, so it reduces this slack before each
// sleep for which the delay would matter.
func (w *epollWaiter) sleep(timeout time.Duration) (int, unix.Errno) {
	if timeout > 0 && w.timer >= 0 {
		return w.sleepTimer(timeout)
	}
	if 0 < timeout && timeout < 200*time.Millisecond {
		_, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, 1, 0)
	}
	n, errno := w.sleepAt(&w.loop, timeout)
	if errno == unix.ENOSYS && w.useTimer() == nil {
		return w.sleep(timeout)
	}
	return n, errno
}

// sleepAt waits for events in a slot.
func (w *epollWaiter) sleepAt(p *sleeper, timeout time.Duration) (int, unix.Errno) {
	if w.timer >= 0 {
		limit := -1 // timeout in milliseconds; -1: none
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

// poll checks for events without blocking, and thus without a call of Go's scheduler.
func (w *epollWaiter) poll(ready []int) ([]int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(w.epoll),
		uintptr(unsafe.Pointer(&w.polled)), uintptr(len(w.polled)), 0, 0, 0)
	w.bell.answer()
	return w.report(w.polled[:max(0, int(n))], ready), w.failed(errno)
}

// useTimer uses a timerfd for precise timeouts, because epoll_pwait2 needs Linux 5.11.
func (w *epollWaiter) useTimer() error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return err
	}
	w.timer = fd
	return w.control(unix.EPOLL_CTL_ADD, fd, tokenTimer, unix.EPOLLIN|unix.EPOLLET)
}

// sleepTimer is like sleep, with the timerfd. If another event ends the sleep, the timer may end a
// later one.
func (w *epollWaiter) sleepTimer(timeout time.Duration) (int, unix.Errno) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(timeout))}
	if unix.TimerfdSettime(w.timer, 0, &spec, nil) == nil {
		timeout += time.Millisecond // a leader may get the event of the timer instead
	}
	return w.sleepAt(&w.loop, timeout)
}

func (w *epollWaiter) Ring() {
	if w.bell.ring() {
		w.Call()
	}
}

func (w *epollWaiter) Enter() bool {
	if !w.bell.enter() {
		return false
	}
	if w.once == 0 {
		w.once = unix.EPOLLONESHOT
		for fd, at := range w.added {
			w.listen(fd, at)
		}
	}
	return true
}

func (w *epollWaiter) Yield() bool {
	w.listenAgain()
	return w.bell.sleep()
}

func (w *epollWaiter) Leave() {
	w.listenAgain()
	w.bell.leave()
	w.Call()
}

// Call implements leaderWaiter. The counter of an eventfd overflows only after 2^64 writes. Any
// other error means that the descriptor is wrong.
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
