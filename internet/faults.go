package internet

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fault is one fault from Faults.
type fault struct {
	at, lasts  time.Duration
	what       string
	begin, end func()
}

func (f *fault) String() string {
	return fmt.Sprintf("at %v, for %v: %s", f.at, f.lasts, f.what)
}

// maxEvents limits the faults on the page of a test.
const maxEvents = 1000

// happens records a fault for the page.
func (w *World) happens(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over && len(w.events) < maxEvents {
		at := time.Since(w.began)
		w.events = append(w.events, fmt.Sprintf("%v: "+format, append([]any{at}, args...)...))
	}
}

// FaultKind is a kind of random fault.
type FaultKind int

// The kinds of Faults.
const (
	Cuts    FaultKind = iota // a link is cut
	Losses                   // a link loses 30 % of the packets
	Crashes                  // a host crashes, and restarts with its program
	Pauses                   // a host is paused
	Resets                   // the connections of two hosts are reset
	// Skews makes the clock of a host up to an hour wrong, and up to 10 % too fast or too slow. See
	// Host.Skew.
	Skews
)

// Faults plans n faults that begin within a time from now, and last from 0.1 to 10 s. The seed
// chooses them from the given kinds, or, without any, from Cuts, Losses and Crashes. A second call
// of Faults fails the test.
func (w *World) Faults(n int, within time.Duration, kinds ...FaultKind) {
	w.t.Helper()
	if len(w.planned) > 0 {
		w.t.Fatalf("internet: Faults: %d faults are planned already: call it once", len(w.planned))
	}
	if !validFaults(n) {
		w.t.Fatalf("internet: -internet.faults=%s: must be numbers below %d, separated by commas, "+
			"or none", *only, n)
	}
	if len(kinds) == 0 {
		kinds = []FaultKind{Cuts, Losses, Crashes}
	}
	random := rand.New(rand.NewPCG(w.seed, 0))
	for range n {
		f := fault{
			at:    time.Duration(random.Int64N(int64(within))).Truncate(time.Millisecond),
			lasts: time.Duration(math.Pow(10, 2*random.Float64()) * 1e8).Truncate(time.Millisecond),
		}
		l, h := w.links[random.IntN(len(w.links))], w.hosts[random.IntN(len(w.hosts))]
		switch kind := kinds[random.IntN(len(kinds))]; kind {
		case Cuts:
			f.what, f.begin, f.end = fmt.Sprintf("link %v is cut", l), l.Cut, l.Restore
		case Losses:
			f.what = fmt.Sprintf("link %v loses 30 %%", l)
			f.begin, f.end = func() { l.lose("loss 30%") }, func() { l.lose("") }
		case Crashes:
			f.what, f.begin, f.end = h.name+" crashes", h.fail, h.recover
		case Pauses:
			f.what, f.begin, f.end = h.name+" pauses", h.suspend, h.wake
		case Resets:
			peer := w.hosts[random.IntN(len(w.hosts))].name
			f.what = fmt.Sprintf("the connections of %s and %s are reset", h.name, peer)
			f.lasts, f.begin, f.end = 0, func() { h.Reset(peer) }, func() {}
		case Skews:
			const most = int64(time.Hour / time.Second)
			ahead := time.Duration(random.Int64N(2*most+1)-most) * time.Second
			drift := math.Round(200*random.Float64()-100) / 1000
			f.what = fmt.Sprintf("the clock of %s is ahead by %v, and gains %v s a second", h.name,
				ahead, drift)
			f.begin, f.end = func() { h.Skew(ahead, drift) }, func() { h.Skew(0, 0) }
		default:
			w.t.Fatalf("internet: Faults: %d is not a kind of fault", kind)
		}
		w.planned = append(w.planned, f)
	}
	slices.SortStableFunc(w.planned, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	began := time.Since(w.began)
	for i := range w.planned {
		if f := &w.planned[i]; kept(i) {
			w.At(began+f.at, f.begin)
			w.At(began+f.at+f.lasts, f.end)
		}
	}
}

// validFaults reports whether the flag -internet.faults chooses from n faults.
func validFaults(n int) bool {
	if *only == "" || *only == "none" {
		return true
	}
	for word := range strings.SplitSeq(*only, ",") {
		if k, err := strconv.ParseUint(word, 10, 31); err != nil || int(k) >= n {
			return false
		}
	}
	return true
}

// kept reports whether the flag -internet.faults includes the fault with this number.
func kept(i int) bool {
	return *only == "" || slices.Contains(strings.Split(*only, ","), strconv.Itoa(i))
}

// shrink returns a part of list for which fails returns true, and from which no single element can
// be removed. The algorithm is delta debugging (Zeller and Hildebrandt, IEEE TSE 28(2), 2002).
func shrink(list []int, fails func([]int) bool) []int {
	if !fails(list) {
		return list // the test does not fail every time
	}
	for n := 2; len(list) > 0; {
		size := (len(list) + n - 1) / n
		smaller := false
		for i := 0; i < len(list) && !smaller; i += size {
			rest := slices.Concat(list[:i], list[min(i+size, len(list)):])
			if smaller = fails(rest); smaller {
				list, n = rest, max(n-1, 2)
			}
		}
		if smaller {
			continue
		}
		if size == 1 {
			break
		}
		n = min(2*n, len(list))
	}
	return list
}
