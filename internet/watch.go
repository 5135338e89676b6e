package internet

import (
	"cmp"
	"flag"
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

// watch is how often a network checks whether its program hangs, in the bubble's time.
const watch = 10 * time.Second

// watching detects programs that hang.
type watching struct {
	timer *time.Timer
	beats atomic.Int64 // number of beats of the bubble's time
	calls int64        // number of calls at the last change
	since time.Time    // time of the last change

	// In real time; spins.mu guards these fields.
	seen  int64         // beats and clock at the last look
	still time.Duration // for how long they have not changed
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
		if waits == "" && !strings.Contains(stacks(inBubble), " [sleep") {
			panic(fmt.Sprintf("internet: %s (%s): the program has not used the network for %v "+
				"of the network's time, and waits for something else (-internet.stall=0 permits "+
				"that):\n\n%s", w.t.Name(), seedFlag(w.seed), *stall, stacks(inBubble)))
		}
	}
	if waits == "" {
		w.watch.timer.Reset(watch)
		return
	}
	w.t.Errorf("internet: no call has returned for %v of the network's time; these calls wait:%s",
		*stall, waits)
	w.stop()
}

// waits lists the calls that wait, and the other ends that they wait for.
func (w *World) waits() string { return w.waiting((*Conn).state) }

func (w *World) waiting(state func(*Conn) string) string {
	var list []string
	for _, h := range w.hosts {
		h.openMu.Lock()
		for o, x := range h.open {
			for i := range o.calls {
				if c := o.calls[i].Load(); c != nil {
					list = append(list, fmt.Sprintf("\n  %s has waited since %v in %s of %s%s%s",
						h.name, c.since, c.name, o.what(), w.peerOf(x, state), o.openedBy()))
				}
			}
		}
		h.openMu.Unlock()
	}
	slices.Sort(list)
	return strings.Join(list, "")
}

// peerOf describes the other end of a connection.
func (w *World) peerOf(x any, state func(*Conn) string) string {
	c, ok := x.(*Conn)
	if !ok {
		return ", opened by"
	}
	peer := "an unknown host"
	for _, h := range w.hosts {
		if hasAddr(h.addrs, c.RemoteAddr()) {
			peer = h.name
			if h.isDown() {
				peer += ", which is down"
			}
		}
	}
	return fmt.Sprintf(" to %s%s, opened by", peer, state(c))
}

func (c *Conn) state() string {
	info, err := c.Info()
	if err != nil {
		return ""
	}
	return ", in state " + info.State
}

// AllowLeaks permits that connections, sockets and listeners are open at the end of the test.
// Otherwise they fail the test, except those of hosts that crashed. The program of Host.Go may
// close them when its calls return net.ErrClosed.
func (w *World) AllowLeaks() { w.keeps = true }

// reportLeaks fails the test if connections, sockets or listeners are open after the hosts were
// closed.
func (w *World) reportLeaks() {
	w.t.Helper()
	if !w.anyOpen() {
		return
	}
	// in a bubble, this waits until the program's goroutines wait or have ended
	time.Sleep(time.Millisecond)
	dump := ""
	var list []string
	for _, h := range w.hosts {
		h.openMu.Lock()
		for o := range h.open {
			if dump == "" {
				dump = stacks(func(string) bool { return true })
			}
			list = append(list, fmt.Sprintf("\n  %s did not close %s, opened by %s (%s)%s",
				h.name, o.what(), o.goroutine, stateOf(dump, o.goroutine), o.openedBy()))
		}
		h.openMu.Unlock()
	}
	if slices.Sort(list); len(list) > 0 {
		w.t.Errorf("internet: %d left open (World.AllowLeaks permits that):%s", len(list),
			strings.Join(list, ""))
	}
}

func (w *World) anyOpen() bool {
	return slices.ContainsFunc(w.hosts, func(h *Host) bool {
		h.openMu.Lock()
		defer h.openMu.Unlock()
		return len(h.open) > 0
	})
}

// look is how often lookForSpins runs, in real time.
const look = time.Second

// spins are the running networks.
var spins = struct {
	mu     sync.Mutex
	worlds map[*World]struct{}
}{worlds: map[*World]struct{}{}}

// A timer that is made in a bubble does not run in real time. This timer needs no goroutine, so
// tests that check for leaked goroutines do not see it.
func init() { time.AfterFunc(look, lookForSpins) }

// enter starts watching a network.
func (w *World) enter() {
	w.watch.since = time.Now()
	w.watch.timer = time.AfterFunc(watch, w.beat)
	w.watch.timer.Reset(watch) // after the field is set, because beat reads it
	spins.mu.Lock()
	defer spins.mu.Unlock()
	spins.worlds[w] = struct{}{}
}

// leave stops watching a network.
func (w *World) leave() {
	w.watch.timer.Stop()
	spins.mu.Lock()
	defer spins.mu.Unlock()
	delete(spins.worlds, w)
}

// lookForSpins ends the process if the time of a bubble does not advance, or shortly before go test
// ends it, because in both cases the test cannot end itself.
func lookForSpins() {
	spins.mu.Lock()
	defer spins.mu.Unlock()
	for w := range spins.worlds {
		seen := w.watch.beats.Load() + w.clock.Now().UnixNano()
		// A process that was suspended, or that got no CPU time, must not report a hang.
		if w.watch.still += look; seen != w.watch.seen {
			w.watch.seen, w.watch.still = seen, 0
		}
		if still := w.watch.still; still >= *spin {
			panic(fmt.Sprintf("internet: %s (%s): the network's time has stood "+
				"still for %v: a goroutine runs without end, or waits for something outside of "+
				"the bubble:\n\n%s", w.t.Name(), seedFlag(w.seed), still, busy()))
		}
		if limit := timeLimit(); limit > 0 && time.Since(loaded) > limit-min(margin, limit/2) {
			panic(fmt.Sprintf("internet: %s (%s) still runs after %v of the network's time, and "+
				"the -timeout of go test, %v, is over. These calls wait:%s\n\n%s", w.t.Name(),
				seedFlag(w.seed), w.clock.Now().Sub(w.began), limit,
				// the state belongs to the bubble
				w.waiting(func(*Conn) string { return "" }), busy()))
		}
	}
	time.AfterFunc(look, lookForSpins)
}

// loaded is when the process started, for go test's time limit.
var loaded = time.Now()

// timeLimit returns the value of go test's -timeout. 0: no limit.
func timeLimit() time.Duration {
	if f := flag.Lookup("test.timeout"); f != nil {
		d, _ := f.Value.(flag.Getter).Get().(time.Duration)
		return d
	}
	return 0
}

// busy returns the stacks of the goroutines that keep the time of bubbles from advancing.
func busy() string {
	return cmp.Or(stacks(func(head string) bool {
		return strings.Contains(head, "synctest bubble") && !strings.Contains(head, "durable")
	}), stacks(func(string) bool { return true }))
}

// stacks returns the stacks of the goroutines for whose first line keep returns true.
func stacks(keep func(head string) bool) string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var list []string
	for g := range strings.SplitSeq(string(buf), "\n\n") {
		if head, _, _ := strings.Cut(g, "\n"); keep(head) {
			list = append(list, g)
		}
	}
	return strings.Join(list, "\n\n")
}

// head returns the runtime's first line about this goroutine, such as "goroutine 7 [running]:".
func head() string {
	var buf [128]byte
	line, _, _ := strings.Cut(string(buf[:runtime.Stack(buf[:], false)]), "\n")
	return line
}

// inBubble reports whether another goroutine waits in the bubble of this one. If this one is in no
// bubble, it reports whether the two differ.
func inBubble(other string) bool {
	mine := head()
	_, bubble, ok := strings.Cut(strings.TrimSuffix(mine, "]:"), "synctest bubble ")
	return !strings.HasPrefix(other, goroutineOf(mine)+" ") &&
		(!ok || strings.HasSuffix(other, "synctest bubble "+bubble+"]:"))
}

// goroutineOf returns the part "goroutine 7" of a goroutine's first line, as from head.
func goroutineOf(head string) string {
	at := strings.Index(head, " [")
	return head[:max(at, 0)]
}

// stateOf returns the runtime's word for the state of a goroutine, from the stacks of all
// goroutines.
func stateOf(dump, goroutine string) string {
	_, after, ok := strings.Cut("\n"+dump, "\n"+goroutine+" [")
	if !ok {
		return "it has ended"
	}
	state, _, _ := strings.Cut(after, "]")
	state, _, _ = strings.Cut(state, ",")
	return strings.TrimSuffix(state, " (durable)")
}
