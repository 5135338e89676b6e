package internet

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func hasAddr(list []netip.Addr, a net.Addr) bool {
	at, err := netip.ParseAddrPort(a.String())
	return err == nil && slices.Contains(list, at.Addr().WithZone(""))
}

// watch is how often a network looks whether its program continues, in the time of its bubble.
const watch = 10 * time.Second

// watching notices programs that do not continue.
type watching struct {
	timer *time.Timer
	beats atomic.Int64 // of the bubble's time
	calls int64        // calls at the last change
	since time.Time    // of the last change

	// Real time. spins.mu guards them.
	seen  int64     // beats and clock at the last look
	still time.Time // since when they are the same
}

// beat runs every 10 s of the bubble's time.
func (w *World) beat() {
	w.watch.beats.Add(1)
	calls := w.calls.Load()
	if calls != w.watch.calls {
		w.watch.calls, w.watch.since = calls, time.Now()
	}
	waits := ""
	if *stall > 0 && time.Since(w.watch.since) >= *stall {
		waits = w.waits()
	}
	if waits == "" {
		w.watch.timer.Reset(watch)
		return
	}
	w.t.Errorf("internet: no call has returned for %v of the network's time, and these wait:%s",
		*stall, waits)
	for _, h := range w.hosts {
		h.stop()
	}
}

// waits lists the calls that wait, and for whom.
func (w *World) waits() string {
	var list []string
	for _, h := range w.hosts {
		h.openMu.Lock()
		for o, x := range h.open {
			for i := range o.calls {
				if c := o.calls[i].Load(); c != nil {
					list = append(list, fmt.Sprintf("\n  %s waits since %v in %s of %s%s%s", h.name,
						c.since, c.name, o.what(), w.peerOf(x), o.openedBy()))
				}
			}
		}
		h.openMu.Unlock()
	}
	slices.Sort(list)
	return strings.Join(list, "")
}

// peerOf describes the other end of a connection.
func (w *World) peerOf(x any) string {
	c, ok := x.(*Conn)
	if !ok {
		return ", opened by"
	}
	peer, state := "an unknown host", ""
	for _, h := range w.hosts {
		if hasAddr(h.addrs, c.RemoteAddr()) {
			peer = h.name
			if h.isDown() {
				peer += ", which is down"
			}
		}
	}
	if info, err := c.Info(); err == nil {
		state = ", in state " + info.State
	}
	return fmt.Sprintf(" to %s%s, opened by", peer, state)
}

// NoLeaks makes the test fail if a host's program did not close a connection, a socket or a
// listener, except those of hosts that crashed. The failure names the calls that opened it. The
// program of Host.Go may close them when its calls return net.ErrClosed.
func (w *World) NoLeaks() {
	w.t.Helper()
	w.leaks = true
}

// reportLeaks fails the test for what is open after the hosts are closed.
func (w *World) reportLeaks() {
	time.Sleep(time.Millisecond) // in a bubble: until the program's goroutines wait or end
	var list []string
	for _, h := range w.hosts {
		h.openMu.Lock()
		for o := range h.open {
			list = append(list, fmt.Sprintf("\n  %s did not close %s, opened by%s", h.name,
				o.what(), o.openedBy()))
		}
		h.openMu.Unlock()
	}
	if slices.Sort(list); len(list) > 0 {
		w.t.Errorf("internet: %d left open:%s", len(list), strings.Join(list, ""))
	}
}

// spins are the running networks.
var spins = struct {
	mu     sync.Mutex
	worlds map[*World]struct{}
}{worlds: map[*World]struct{}{}}

// A timer that is made in a bubble does not run in real time. This one needs no goroutine, so tests
// that look for leaked goroutines do not see it.
func init() { time.AfterFunc(time.Second, lookForSpins) }

// enter starts watching.
func (w *World) enter() {
	w.watch.since = time.Now()
	w.watch.timer = time.AfterFunc(watch, w.beat)
	spins.mu.Lock()
	defer spins.mu.Unlock()
	spins.worlds[w] = struct{}{}
}

// leave ends watching.
func (w *World) leave() {
	w.watch.timer.Stop()
	spins.mu.Lock()
	defer spins.mu.Unlock()
	delete(spins.worlds, w)
}

// lookForSpins ends the process if the time of a bubble stands still: the test cannot end itself.
func lookForSpins() {
	spins.mu.Lock()
	defer spins.mu.Unlock()
	for w := range spins.worlds {
		seen := w.watch.beats.Load() + w.clock.Now().UnixNano()
		if seen != w.watch.seen || w.watch.still.IsZero() {
			w.watch.seen, w.watch.still = seen, time.Now()
		}
		if still := time.Since(w.watch.still); still >= *spin {
			panic(fmt.Sprintf("internet: %s (-internet.seed=%d): the network's time has stood "+
				"still for %v: a goroutine runs without end, or waits for something outside of "+
				"the bubble:\n\n%s", w.t.Name(), w.seed, still.Round(time.Second), busy()))
		}
	}
	time.AfterFunc(time.Second, lookForSpins)
}

// busy returns the stacks of the goroutines that keep bubbles from advancing.
func busy() string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var list []string
	for g := range strings.SplitSeq(string(buf), "\n\n") {
		head, _, _ := strings.Cut(g, "\n")
		if strings.Contains(head, "synctest bubble") && !strings.Contains(head, "durable") {
			list = append(list, g)
		}
	}
	return cmp.Or(strings.Join(list, "\n\n"), string(buf))
}
