package internet

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fault is a fault of Faults.
type fault struct {
	at, lasts  time.Duration
	what       string
	begin, end func()
}

func (f *fault) String() string {
	return fmt.Sprintf("at %v, for %v: %s", f.at, f.lasts, f.what)
}

// Faults plans n faults that begin within a time from now, and last from 0.1 to 10 s: a link is
// cut, or loses 30 % of the packets, or a host crashes and restarts with its program. The seed
// chooses them. Call it once.
func (w *World) Faults(n int, within time.Duration) {
	w.t.Helper()
	random := rand.New(rand.NewPCG(w.seed, 0))
	for range n {
		f := fault{
			at:    time.Duration(random.Int64N(int64(within))).Truncate(time.Millisecond),
			lasts: time.Duration(math.Pow(10, 2*random.Float64()) * 1e8).Truncate(time.Millisecond),
		}
		l, h := w.links[random.IntN(len(w.links))], w.hosts[random.IntN(len(w.hosts))]
		switch random.IntN(3) {
		case 0:
			f.what, f.begin, f.end = fmt.Sprintf("link %v is cut", l), l.Cut, l.Restore
		case 1:
			f.what = fmt.Sprintf("link %v loses 30 %%", l)
			f.begin, f.end = func() { l.lose("loss 30%") }, func() { l.lose("") }
		case 2:
			f.what = fmt.Sprintf("%s crashes", h.name)
			f.begin, f.end = func() { h.fail() }, func() { h.recover() }
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

// kept reports whether the flag -internet.faults has the fault of that number.
func kept(i int) bool {
	return *only == "" || slices.Contains(strings.Split(*only, ","), strconv.Itoa(i))
}

// Test runs a test of a network, which is the text of Start or the path of Run, in a
// testing/synctest bubble. With the flag -internet.seeds=N it runs it for N seeds, as subtests side
// by side. If it fails with the faults of Faults, it searches the smallest part of them with which
// it still fails, and prints that.
func Test(t *testing.T, network string, test func(t *testing.T, w *World)) {
	t.Helper()
	if *seeds <= 1 {
		one(t, network, *seed, test)
		return
	}
	for k := range *seeds {
		t.Run(fmt.Sprintf("seed=%d", *seed+k), func(t *testing.T) {
			t.Parallel()
			one(t, network, *seed+k, test)
		})
	}
}

func one(t *testing.T, network string, seed uint64, test func(t *testing.T, w *World)) {
	t.Helper()
	var planned []fault
	t.Cleanup(func() {
		if t.Failed() && len(planned) > 0 && *only == "" && *shrinks {
			explain(t, seed, planned)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := load(t, network, seed)
		defer func() { planned = w.planned }()
		test(t, w)
	})
}

// explain prints the smallest part of the faults with which the test fails.
func explain(t *testing.T, seed uint64, planned []fault) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/seed=")
	all := make([]int, len(planned))
	for i := range all {
		all[i] = i
	}
	least := shrink(all, func(faults []int) bool {
		ctx, cancel := context.WithTimeout(context.Background(), shrinkLimit)
		defer cancel()
		return exec.CommandContext(ctx, os.Args[0], repeat(name, seed, faults)...).Run() != nil
	})
	var lines strings.Builder
	for _, i := range least {
		fmt.Fprintf(&lines, "\n  %v", &planned[i])
	}
	t.Logf("internet: these %d of %d faults are enough:%s\nto repeat this: go test %s", len(least),
		len(planned), lines.String(), strings.Join(repeat(name, seed, least), " "))
}

// shrinkLimit is how long one run may take when faults are shrunk.
const shrinkLimit = time.Minute

// repeat returns the arguments of a test's program that run it with a part of the faults.
func repeat(name string, seed uint64, faults []int) []string {
	words := make([]string, len(faults))
	for i, f := range faults {
		words[i] = strconv.Itoa(f)
	}
	list := strings.Join(words, ",")
	return []string{
		"-test.run=^" + name + "$", "-test.count=1", fmt.Sprintf("-internet.seed=%d", seed),
		"-internet.faults=" + cmp.Or(list, "none"),
	}
}

// shrink returns a part of list with which fails holds, and from which no single element can be
// taken. It is delta debugging (Zeller and Hildebrandt, IEEE TSE 28(2), 2002).
func shrink(list []int, fails func([]int) bool) []int {
	if !fails(list) {
		return list // it does not fail each time
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

// By default a test does the same each time.
var (
	seed    = flag.Uint64("internet.seed", 1, "the seed of package internet")
	seeds   = flag.Uint64("internet.seeds", 1, "how many seeds package internet tests")
	only    = flag.String("internet.faults", "", "the numbers of the faults to cause, or none")
	stall   = flag.Duration("internet.stall", 24*time.Hour, "fail if all wait so long; 0: never")
	spin    = flag.Duration("internet.spin", time.Minute, "fail if a bubble stands still so long")
	shrinks = flag.Bool("internet.shrink", true, "search the fewest faults that fail")
)
