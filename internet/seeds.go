package internet

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// By default, every run of a test uses the same seed.
var (
	seed    = flag.Uint64("internet.seed", 1, "the seed of package internet")
	seeds   = flag.Uint64("internet.seeds", 1, "how many seeds package internet tests")
	batch   = flag.Uint64("internet.batch", 50, "how many seeds one process tests")
	worker  = flag.Bool("internet.worker", false, "test the seeds in this process")
	only    = flag.String("internet.faults", "", "the numbers of the faults to cause, or none")
	stall   = flag.Duration("internet.stall", 24*time.Hour, "longest wait of all programs; 0: any")
	spin    = flag.Duration("internet.spin", time.Minute, "longest standstill of a bubble's time")
	shrinks = flag.Bool("internet.shrink", true, "find the fewest faults that still fail")
)

// Test runs a test of a network, which is the text of Start or the path of Run, in a
// testing/synctest bubble. With the flag -internet.seeds=N, Test runs the test for N seeds, in
// GOMAXPROCS processes with GOMAXPROCS=1 each. If the test fails with the faults of Faults, Test
// searches for the smallest part of the faults with which the test still fails, and prints it.
func Test(t *testing.T, network string, test func(t *testing.T, w *World)) {
	t.Helper()
	switch {
	case *worker:
		for k := range *seeds {
			if !t.Run(fmt.Sprintf("seed=%d", *seed+k), func(t *testing.T) {
				one(t, network, *seed+k, test)
			}) {
				return // the parent process continues with the next seed
			}
			fmt.Printf("\n%s%d\n", passed, *seed+k)
		}
	case *seeds <= 1:
		one(t, network, *seed, test)
	default:
		(&search{t: t, began: time.Now(), next: *seed, end: *seed + *seeds}).run()
	}
}

// passed is the line with which a worker reports that a seed has passed.
const passed = "internet: passed seed "

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
	all := make([]int, len(planned))
	for i := range all {
		all[i] = i
	}
	least := shrink(all, func(faults []int) bool {
		ctx, cancel := context.WithTimeout(context.Background(), shrinkLimit)
		defer cancel()
		args := append(arguments(t.Name(), seed), numbers(faults), "-internet.shrink=false")
		return exec.CommandContext(ctx, os.Args[0], args...).Run() != nil
	})
	var lines strings.Builder
	for _, i := range least {
		fmt.Fprintf(&lines, "\n  %v", &planned[i])
	}
	enough := "it fails without faults"
	if len(least) > 0 {
		enough = fmt.Sprintf("it fails with %d of %d faults:%s", len(least), len(planned),
			lines.String())
	}
	t.Logf("internet: %s\n%s%s", enough, repeatText, repeat(t.Name(), seed, numbers(least)))
}

// repeatText precedes the command that repeats a failure.
const repeatText = "to repeat this: "

// shrinkLimit is how long one run may take while faults are shrunk.
const shrinkLimit = time.Minute

// numbers returns the flag that selects a part of the faults.
func numbers(faults []int) string {
	words := make([]string, len(faults))
	for i, f := range faults {
		words[i] = strconv.Itoa(f)
	}
	return "-internet.faults=" + cmp.Or(strings.Join(words, ","), "none")
}

// pattern returns the -run pattern of a test, without the subtest of a seed.
func pattern(name string) string {
	name, _, _ = strings.Cut(name, "/seed=")
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// repeat returns the command that runs a test again. With another GOMAXPROCS it may behave
// differently.
func repeat(name string, seed uint64, flags ...string) string {
	words := []string{"go test -run '" + pattern(name) + "' -count=1", seedFlag(seed)}
	if n, ok := os.LookupEnv("GOMAXPROCS"); ok {
		words = slices.Insert(words, 0, "GOMAXPROCS="+n)
	}
	return strings.Join(append(words, flags...), " ")
}

// faultsFlag returns the flag -internet.faults for the command; nil: it is not set.
func faultsFlag() []string {
	if *only == "" {
		return nil
	}
	return []string{"-internet.faults=" + *only}
}

func seedFlag(seed uint64) string { return fmt.Sprintf("-internet.seed=%d", seed) }

// arguments returns the arguments of a process that runs a test with a seed. They are the flags of
// this process, except those that choose tests and seeds. The flags of output files are also
// omitted, because each process would overwrite them.
func arguments(name string, seed uint64) (list []string) {
	flag.Visit(func(f *flag.Flag) {
		kind, rest, _ := strings.Cut(f.Name, ".")
		switch {
		case kind == "internet" && rest != "stall" && rest != "spin":
		case kind == "test" && rest != "artifacts" && rest != "outputdir" && rest != "short":
		default:
			list = append(list, fmt.Sprintf("-%s=%s", f.Name, f.Value))
		}
	})
	return append(list, "-test.run="+pattern(name), "-test.count=1", seedFlag(seed))
}

// search runs a test for many seeds in other processes. A seed that crashes its process does not
// stop the others, and leaked memory lasts for at most one batch.
type search struct {
	t     *testing.T
	began time.Time

	mu        sync.Mutex
	next, end uint64 // seeds that no process has taken yet
	done      int
	failed    []uint64
	late      bool // go test's time limit ends the search early
}

const (
	// shrunk is the number of failed seeds per search whose faults are shrunk.
	shrunk = 3
	// margin is how long before go test's time limit a test stops, to report its results.
	margin = 5 * time.Second
)

func (s *search) run() {
	s.t.Helper()
	ctx := context.Background()
	if end, ok := s.t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-margin))
		defer cancel()
	}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for from, n := s.take(); n > 0; from, n = s.take() {
				if !s.batch(ctx, from, from+n) {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.late = true
					return
				}
			}
		})
	}
	workers.Wait()
	took := time.Since(s.began)
	slices.Sort(s.failed)
	s.t.Logf("internet: %d seeds in %v, %.0f an hour; %d failed: %v", s.done,
		took.Round(time.Millisecond), float64(s.done)/took.Hours(), len(s.failed), s.failed)
	if s.late {
		s.t.Errorf("internet: %d of %d seeds are not tested: go test ends soon: use a longer "+
			"-timeout", *seeds-uint64(s.done), *seeds)
	}
}

// take returns the next seeds, at most one batch.
func (s *search) take() (from, n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	workers := uint64(runtime.GOMAXPROCS(0))
	from, n = s.next, min(max(*batch, 1), (*seeds+workers-1)/workers, s.end-s.next)
	s.next += n
	return from, n
}

// batch tests some seeds. After a failed seed it starts another process. It returns false if go
// test would end before all of them are tested.
func (s *search) batch(ctx context.Context, from, end uint64) bool {
	s.t.Helper()
	for from < end {
		limit, began := time.Duration(0), time.Now()
		if stop, ok := ctx.Deadline(); ok {
			if limit = stop.Sub(began); limit <= margin {
				return false
			}
		}
		args := append(arguments(s.t.Name(), from), fmt.Sprintf("-test.timeout=%v", limit),
			"-internet.worker", fmt.Sprintf("-internet.seeds=%d", end-from))
		if s.failures() >= shrunk {
			args = append(args, "-internet.shrink=false")
		}
		cmd := exec.CommandContext(ctx, os.Args[0], args...)
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		output, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			return false
		}
		var others []string
		count := 0
		for line := range strings.Lines(string(output)) {
			if strings.HasPrefix(line, passed) {
				count++
			} else if strings.TrimSpace(line) != "" {
				others = append(others, line)
			}
		}
		from += uint64(count)
		if err == nil && from < end {
			s.t.Errorf("internet: seed %d was skipped:\n%s", from, strings.Join(others, ""))
			return true
		}
		if limit > 0 && time.Since(began) >= limit-margin {
			s.note(count, end, end, nil, "")
			s.t.Logf("internet: seed %d has not ended:\n%s", from, strings.Join(others, ""))
			return false
		}
		s.note(count, from, end, err, strings.Join(others, ""))
		from++ // skip the seed that failed
	}
	return true
}

func (s *search) failures() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.failed)
}

// note counts the seeds that a process has tested. If from is before end, the seed from failed.
func (s *search) note(count int, from, end uint64, err error, output string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done += count
	if from < end {
		s.done++
		s.failed = append(s.failed, from)
		if !strings.Contains(output, repeatText) { // the seed crashed its process
			_, command, _ := strings.Cut(repeat(s.t.Name(), from, faultsFlag()...), "go test ")
			output += repeatText + "GOMAXPROCS=1 go test " + command + "\n"
		}
		s.t.Errorf("internet: seed %d failed (%v):\n%s", from, err, output)
	} else if err != nil {
		s.t.Errorf("internet: a process failed after its last seed, %d (%v):\n%s", from-1,
			err, output)
	}
}
