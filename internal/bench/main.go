// Command bench measures what the project promises about speed and prints it beside the floors: a
// file through real processes of the built program, a router's packets, the loop's wake-up.
//
//	go run ./internal/bench              # everything; ten minutes and 10 GB of disk at most
//	go run ./internal/bench -quick       # the same with small sizes
//	go run ./internal/bench -only loss   # those whose name contains that
//
// A missed floor is a figure, not a failure: absolute figures move from machine to machine and hour
// to hour. The exit status tells whether everything could be measured and every file arrived whole.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
)

// bench is one run of the program.
type bench struct {
	quick   bool
	json    bool
	runs    int
	only    string
	program string // the node's; empty: it is built
	dir     string // for files, each measurement has the folder for itself
	out     io.Writer
	status  io.Writer
}

func main() {
	var b bench
	flag.BoolVar(&b.quick, "quick", false, "small sizes, one run each")
	flag.BoolVar(&b.json, "json", false, "print a JSON object a line instead of the table")
	flag.IntVar(&b.runs, "runs", 0, "runs of each measurement; 0: its own number")
	flag.StringVar(&b.only, "only", "", "only those whose name contains `TEXT`")
	flag.StringVar(&b.program, "node", "", "measure this built `PROGRAM`; empty: build one")
	flag.StringVar(&b.dir, "dir", "", "`FOLDER` for temporary files; empty: the system's")
	flag.Parse()
	b.out, b.status = os.Stdout, os.Stderr
	if flag.NArg() > 0 || b.runs < 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := b.run(ctx)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(b.status, "bench:", err) // nobody is left to tell when this fails
		os.Exit(1)
	}
}

// run measures everything that is wanted.
func (b *bench) run(ctx context.Context) (err error) {
	if b.dir, err = os.MkdirTemp(b.dir, "tidepool-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.program == "" {
		if err := b.build(ctx); err != nil {
			return err
		}
	} else if b.program, err = filepath.Abs(b.program); err != nil {
		return err
	}
	var all []result
	var failures []error
	for _, m := range b.measurements() {
		if !strings.Contains(m.name, b.only) {
			continue
		}
		r, err := b.measure(ctx, m)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", m.name, err))
			continue
		}
		all = append(all, r...)
	}
	if len(all) == 0 && len(failures) == 0 {
		return fmt.Errorf("no measurement has %q in its name", b.only)
	}
	return errors.Join(append(failures, b.print(all))...)
}

// build builds the node as a user would.
func (b *bench) build(ctx context.Context) error {
	b.program = filepath.Join(b.dir, "node.exe") // the name suits every system
	c := exec.CommandContext(ctx, "go", "build", "-o", b.program,
		"github.com/tidepool-net/tidepool/cmd/node")
	c.Stderr = b.status
	if err := c.Run(); err != nil {
		return fmt.Errorf("building the node: %w", err)
	}
	return nil
}

// measurement is one row of the table, or several that come out of one run.
type measurement struct {
	name string
	runs int // how often by default
	once func(ctx context.Context, b *bench) ([]sample, error)
}

// sample is one figure of one run.
type sample struct {
	what  string // behind the measurement's name; empty: there is only one
	value float64
	unit  string
	floor float64 // 0: none is promised
	note  string
}

func (b *bench) measurements() []measurement {
	return []measurement{
		{"clean a-b", 3, cleanDirect},
		{"clean a-b-c", 3, cleanRouted},
		{"2 % loss a-b-c", 5, lossyRouted},
		{"sequence wrap", 1, wrap},
		{"router", 3, router},
		{"waiting", 1, waiting},
	}
}

// measure runs a measurement as often as is wanted and gathers its figures.
func (b *bench) measure(ctx context.Context, m measurement) ([]result, error) {
	runs := m.runs
	if b.quick {
		runs = 1
	}
	if b.runs > 0 {
		runs = b.runs
	}
	var all []result
	for run := range runs {
		_, _ = fmt.Fprintf(b.status, "%s: run %d of %d\n", m.name, run+1, runs) // only for people
		samples, err := m.once(ctx, b)
		if err != nil {
			return nil, err
		}
		for _, s := range samples {
			all = gather(all, m.name, s)
		}
	}
	return all, nil
}

// size is a number of bytes, or the small one when it shall be quick.
func (b *bench) size(usual, quick int64) int64 {
	if b.quick {
		return quick
	}
	return usual
}

// print writes the results as a table or as JSON.
func (b *bench) print(all []result) error {
	if b.json {
		enc := json.NewEncoder(b.out)
		for _, r := range all {
			if err := enc.Encode(r.document()); err != nil {
				return err
			}
		}
		return nil
	}
	_, err := fmt.Fprintf(b.out, "%s/%s, %d CPUs, %s; medians of the runs\n\n%s",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), table(all))
	return err
}
