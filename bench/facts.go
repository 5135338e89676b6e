//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/bench/lead"
	"github.com/tidepool-net/tidepool/bench/report"
)

// Names of figures that the points refer to.
const (
	virtual       = "virtual time"
	allocated     = "allocations"
	slowestPreset = "slowest experiment of a founding document"
)

// measurement yields one or more figures that are not compared with another stack.
type measurement struct {
	name string
	once func(context.Context, *session) ([]report.Fact, error)
	long bool
}

func measurements() []measurement {
	return []measurement{
		{"files", files, false},
		{"sequence numbers", wrap, true},
		{"forwarding", forwarding, false},
		{"impair", impaired, false},
		{"waiting", waiting, false},
		{"many connections", manyConnections, false},
		{"virtual time", virtualTime, false},
		{"experiments", experiments, true},
		{"allocations", allocations, false},
	}
}

func fact(name string, v float64, unit, note string) report.Fact {
	v = report.Round(v)
	return report.Fact{Name: name, Value: v, Unit: unit, Runs: []float64{v}, Note: note}
}

// files transfers files between real nodes, from disk to disk, with SHA-256 at both ends. This is
// the method and the file of founding document 001.
func files(ctx context.Context, s *session) (list []report.Fact, err error) {
	for _, f := range []struct {
		name string
		args []string
	}{
		{"a file, two nodes", []string{"--bytes", "1000000000", "--direct", "--bare"}},
		{"a file, three nodes", []string{"--bytes", "1000000000", "--loss", "0", "--bare"}},
		{"node demo: 92 MB, 2 % loss, captures", nil},
		{"10 % loss each way: megabytes of a file that arrived", []string{
			"--bytes", "5000000", "--loss", "10", "--bare",
		}},
	} {
		d, runs, err := s.demos(ctx, f.args)
		if err != nil {
			return list, fmt.Errorf("%s: %w", f.name, err)
		}
		note := d.Account()
		if d.BoundMBPerS > 0 {
			note = fmt.Sprintf("bound %.1f, ", d.BoundMBPerS) + note
		}
		if strings.HasPrefix(f.name, "10 %") {
			note = fmt.Sprintf("at %.2f MB/s, ", d.MBPerS) + note
			list = append(list, fact(f.name, float64(d.Bytes)/1e6, "MB", note))
			continue
		}
		one := fact(f.name, d.MBPerS, "MB/s", note)
		one.Runs = runs
		list = append(list, one)
	}
	return list, nil
}

// maxFiles limits how often each file is transferred, because a gigabyte takes some time.
const maxFiles = 3

// demos transfers a file once per round. It returns the median run and the rates of all runs.
func (s *session) demos(
	ctx context.Context, args []string,
) (middle lead.Demo, rates []float64, err error) {
	var all []lead.Demo
	for range min(s.turns.Rounds, maxFiles) {
		d, err := s.program.Demo(ctx, args...)
		if err != nil {
			return d, nil, err
		}
		s.logf("a file: %.4g MB/s\n", d.MBPerS)
		all, rates = append(all, d), append(rates, report.Round(d.MBPerS))
	}
	slices.SortFunc(all, func(a, b lead.Demo) int { return cmp.Compare(a.MBPerS, b.MBPerS) })
	return all[(len(all)-1)/2], rates, nil
}

// wrapBytes exceeds 2^32, so that the sequence numbers wrap.
const wrapBytes = 5_000_000_000

func wrap(ctx context.Context, s *session) ([]report.Fact, error) {
	d, err := s.program.Demo(ctx, "--bytes", strconv.Itoa(wrapBytes), "--direct", "--bare")
	if err != nil {
		return nil, err
	}
	note := fmt.Sprintf("%.0f MB/s, %s", d.MBPerS, d.Account())
	return []report.Fact{
		fact("past 2^32 sequence numbers, intact", float64(d.Bytes)/1e9, "GB", note),
	}, nil
}

func forwarding(ctx context.Context, s *session) ([]report.Fact, error) {
	var wall, core []float64
	var last lead.Forwarded
	for range s.turns.Rounds {
		f, err := s.program.Forward(ctx, 2*s.span)
		if err != nil {
			return nil, err
		}
		wall = append(wall, report.Round(f.Packets))
		core = append(core, report.Round(1e6/f.CPU))
		last = f
	}
	note := fmt.Sprintf("%.3f µs per packet, %.3f of it outside the kernel; %s",
		last.CPU, last.User, last.Note)
	return []report.Fact{
		{
			Name: "router, packets of 1400 B a second of one core", Value: middle(core),
			Unit: "packets/s", Runs: core, Note: note,
		},
		{
			Name: "router, packets of 1400 B a second, all three busy", Value: middle(wall),
			Unit: "packets/s", Runs: wall,
		},
	}, nil
}

// impaired measures the effect of the shell command `impair` on the packets of a link.
func impaired(ctx context.Context, s *session) (list []report.Fact, err error) {
	all, err := s.program.Impair(ctx)
	for _, i := range all {
		list = append(list, fact("impair "+i.Words+": "+i.What, i.Got, i.Unit, i.Note))
	}
	return list, err
}

func middle(list []float64) float64 {
	s := lead.Samples{}
	for _, v := range list {
		s.Runs = append(s.Runs, lead.Sample{Value: v})
	}
	return s.Value()
}

// waiting measures how late the event loop wakes up with the method of waiting that it uses on this
// machine.
func waiting(ctx context.Context, s *session) (list []report.Fact, err error) {
	all, err := lead.GoBench(ctx, s.root, "./internal/node",
		"^Benchmark(Wakeup|TimerError)$", "1000x")
	for _, b := range all {
		if !strings.Contains("/"+b.Name+"/", "/best/") {
			continue
		}
		name := strings.ReplaceAll(b.Name, "/best", "")
		name = strings.Replace(name, "Wakeup/", "wake-up by ", 1)
		name = strings.Replace(name, "TimerError/", "lateness of a timer of ", 1)
		list = append(list, fact(name, b.Metrics["p50-µs"], "µs",
			"99th percentile "+report.Figure(b.Metrics["p99-µs"])+" µs"))
	}
	return list, err
}

// manyCount is the number of connections to one node.
const manyCount = 100_000

func manyConnections(ctx context.Context, s *session) ([]report.Fact, error) {
	c, err := s.program.Hold(ctx, manyCount)
	if err != nil {
		return nil, err
	}
	return []report.Fact{
		fact("100,000 connections: those established", float64(c.Count), "connections",
			"opened in "+c.Took.Round(time.Millisecond).String()),
		fact("100,000 connections: memory of the node", float64(c.Resident)/1e6, "MB resident",
			fmt.Sprintf("%.0f B a connection; the client's heap has %.0f B for its end of one",
				c.Each, c.ClientHeap)),
		fact("100,000 connections: goroutines of the node", float64(c.Goroutines), "goroutines",
			"including those of the shell and the runtime"),
	}, nil
}

// virtualTime measures how many packets one core simulates per second: each packet is sent,
// checksummed, delayed, verified, acknowledged and read.
func virtualTime(ctx context.Context, s *session) (list []report.Fact, err error) {
	for _, of := range []struct{ name, pkg, pattern string }{
		{virtual, "./internal/sim", "^Benchmark(World|Cell)$"},
		// if ns-3 is not installed, its row is missing
		{"the same scenario", "./judge/ns3", "^BenchmarkJudge$"},
	} {
		all, err := lead.GoBench(ctx, s.root, of.pkg, of.pattern, "1x")
		if err != nil {
			return list, err
		}
		for _, b := range all {
			list = append(list, fact(of.name+", "+b.Name, b.Metrics["packets/s"], "packets/s", ""))
		}
	}
	return list, nil
}

// boundless is the experiment without a time limit: founding document 004's transfer of 5 GB, in
// which the sequence numbers wrap.
const boundless = "wrap-5g"

// experiments measures the time of each experiment that reproduces a founding document.
func experiments(ctx context.Context, s *session) ([]report.Fact, error) {
	names, err := s.program.Founding(ctx)
	if err != nil {
		return nil, err
	}
	var slowest, work time.Duration
	var which, aside string
	var over []string
	checked := 0
	for _, name := range names {
		took, busy, err := s.program.Check(ctx, name)
		if errors.Is(err, lead.ErrNothingExpected) {
			continue // it has no expectations to check
		}
		if err != nil {
			return nil, err
		}
		s.logf("%s: %.1f s, %.1f s of CPU\n", name, took.Seconds(), busy.Seconds())
		if name == boundless {
			aside = fmt.Sprintf("; %s, which has no limit: %.1f s", name, took.Seconds())
			continue
		}
		work = max(work, busy)
		checked++
		if took > slowest {
			slowest, which = took, name
		}
		if took > 5*time.Second {
			over = append(over, fmt.Sprintf("%s %.1f s", name, took.Seconds()))
		}
	}
	note := fmt.Sprintf("%s, of %d; the most CPU of one: %.1f s", which, checked, work.Seconds())
	if len(over) > 0 {
		note += "; over 5 s: " + strings.Join(over, ", ")
	}
	return []report.Fact{fact(slowestPreset, slowest.Seconds(), "s", note+aside)}, nil
}

// allocations counts allocations on the data path; tests require zero.
func allocations(ctx context.Context, s *session) (list []report.Fact, err error) {
	for _, b := range []struct{ pkg, pattern, what string }{
		{"./internal/tcp", "^BenchmarkBulkSegments$", "two connections, a window"},
		{"./internal/stack", "^BenchmarkForward$", "a router, a frame"},
		{"./internal/link", "^BenchmarkUDPTrain$", "a UDP link, a train"},
	} {
		all, err := lead.GoBench(ctx, s.root, b.pkg, b.pattern, "2000x")
		if err != nil {
			return list, err
		}
		worst := 0.0
		for _, one := range all {
			worst = max(worst, one.Metrics["allocs/op"])
		}
		list = append(list, fact(allocated+", "+b.what, worst, "allocs", ""))
	}
	return list, nil
}
