// Command chaos connects two stacks by links that drop, duplicate, reorder, cut and corrupt
// packets, and runs all kinds of applications over them, seed after seed, until a check fails:
//
//	go run ./internal/sim/chaos               # until interrupted
//	go run ./internal/sim/chaos -seeds 10000  # a number of seeds
//	go run ./internal/sim/chaos -seed 4711    # one seed, with its log
//	go run ./internal/sim/chaos -seeds 2000 -hash  # a line for each: seed, hash, ends
//	go run ./internal/sim/chaos -ipv6         # over IPv6, with MTUs of at least 1280
//
// check.go has the checks. The seed determines everything: draw.go draws the scenario from it. If a
// seed fails, the exit status is 1 and the last lines say how to repeat the run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"time"
)

func main() {
	var r runner
	var one int64
	flag.Uint64Var(&r.seeds, "seeds", 0, "how many `SEEDS` to run; 0: until interrupted")
	flag.Uint64Var(&r.first, "first", 0, "the `SEED` to begin with")
	flag.Int64Var(&one, "seed", -1, "run this `SEED` alone and tell what it was")
	flag.IntVar(&r.workers, "workers", runtime.GOMAXPROCS(0), "how many seeds run at a time")
	flag.BoolVar(&r.hash, "hash", false, "print each seed's hash and how its ends closed")
	flag.BoolVar(&r.ipv6, "ipv6", false, "run over IPv6")
	trace := flag.Bool("trace", false, "with -seed: print every packet")
	flag.Parse()
	if flag.NArg() > 0 || r.workers < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if one >= 0 {
		os.Exit(replay(os.Stdout, uint64(one), r.ipv6, *trace))
	}
	r.out = os.Stdout
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	began := time.Now()
	total := r.run(ctx)
	stop()
	total.print(r.out, time.Since(began))
	if len(total.failures) > 0 {
		os.Exit(1)
	}
}

// say prints to a terminal or a log and ignores errors.
func say(out interface{ Write([]byte) (int, error) }, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format, args...)
}
