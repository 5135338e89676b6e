//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/bench/lead"
	"github.com/tidepool-net/tidepool/bench/report"
)

// streamCase compares a stream of ours with the same stream of other stacks.
type streamCase struct {
	name       string // a peer may replace this name by its own
	path       lead.Path
	congestion string
	peers      []peer
	quick      bool
}

// peer is a stack to compare with, and the goal for the ratio.
type peer struct {
	name string
	// as names the case with this peer; empty: the case's own name.
	as   string
	goal float64
	// stack is the name of an end's stack or a ceiling, or kernel.
	stack string
	// offloads says whether the kernel's interfaces have offloads.
	offloads   bool
	path       lead.Path
	congestion string
	slow       bool // not part of bench quick
}

// Paths of the streams.
var (
	direct     = lead.Path{}
	ourRouter  = lead.Path{Between: "router", Seed: 1}
	relay      = lead.Path{Between: "relay", Seed: 1}
	lossOf     = func(p lead.Path, share float64) lead.Path { p.Loss = share; return p }
	overIPv6   = func(p lead.Path) lead.Path { p.IPv6 = true; return p }
	delayOf    = func(p lead.Path, d time.Duration) lead.Path { p.Delay = d; return p }
	routerLoss = func(share float64) lead.Path { return lossOf(ourRouter, share) }
)

// streams returns the cases of the throughput table, the quick ones in order of importance.
func (s *session) streams() []streamCase {
	kernelOff := func(loss float64, cc string, goal float64) peer {
		return peer{
			name: "kernel-" + cc, stack: "kernel", congestion: cc, goal: goal,
			path: lossOf(direct, loss),
		}
	}
	return []streamCase{
		{name: "clean", quick: true, peers: []peer{
			{name: "gvisor-tuned", stack: "gvisor", goal: 2},
			{name: "plane", as: "plane", stack: "plane", goal: 0.6},
			{name: "raw-gso", as: "raw", stack: "raw-gso", goal: 0.25},
			{
				name: "kernel-no-offloads", as: "kernel", stack: "kernel", congestion: "cubic",
				goal: 3,
			},
			{
				name: "kernel-offloads", as: "kernel", stack: "kernel", congestion: "cubic",
				offloads: true, slow: true,
			},
			{name: "gvisor-own-link", stack: "gvisor-own", slow: true},
			{name: "raw-mmsg", as: "raw", stack: "raw-mmsg", slow: true},
			{name: "raw-plain", as: "raw", stack: "raw-plain", slow: true},
		}},
		{name: "router", quick: true, path: ourRouter, peers: []peer{
			{name: "gvisor-tuned", stack: "gvisor", path: relay, goal: 1.5},
		}},
		// One peer of these cases is tidepool itself over IPv4.
		{name: "clean6", quick: true, path: overIPv6(direct), peers: []peer{
			{name: "gvisor-tuned", stack: "gvisor", path: overIPv6(direct), goal: 2},
			{name: "ipv4", stack: "tidepool", goal: 0.9},
		}},
		{name: "router6", quick: true, path: overIPv6(ourRouter), peers: []peer{
			{name: "gvisor-tuned", stack: "gvisor", path: overIPv6(relay), goal: 2},
			{name: "ipv4", stack: "tidepool", path: ourRouter, goal: 0.9},
		}},
		{name: "loss2", quick: true, path: routerLoss(0.02), congestion: "cubic", peers: []peer{
			kernelOff(0.02, "cubic", 5),
			{
				name: "gvisor-tuned-reno", stack: "gvisor", path: lossOf(relay, 0.02),
				congestion: "reno", slow: true,
			},
		}},
		{name: "loss2-bbr", quick: true, path: routerLoss(0.02), congestion: "bbr", peers: []peer{
			kernelOff(0.02, "bbr", 1),
		}},
		{name: "loss2-reno", path: routerLoss(0.02), congestion: "reno", peers: []peer{
			kernelOff(0.02, "reno", 5),
		}},
		{name: "loss10", path: routerLoss(0.1), congestion: "cubic", peers: []peer{
			kernelOff(0.1, "cubic", 1),
		}},
		{name: "loss10-reno", path: routerLoss(0.1), congestion: "reno", peers: []peer{
			kernelOff(0.1, "reno", 1),
		}},
		{name: "loss10-bbr", path: routerLoss(0.1), congestion: "bbr", peers: []peer{
			kernelOff(0.1, "bbr", 1),
		}},
		// The kernel has no BBRv3, so these have no goal.
		{name: "loss2-bbr3", path: routerLoss(0.02), congestion: "bbr3", peers: []peer{
			kernelOff(0.02, "bbr", 0),
		}},
		{name: "loss10-bbr3", path: routerLoss(0.1), congestion: "bbr3", peers: []peer{
			kernelOff(0.1, "bbr", 0),
		}},
		{name: "delay5ms", path: delayOf(relay, 5*time.Millisecond), peers: []peer{
			{name: "gvisor-tuned", stack: "gvisor", path: delayOf(relay, 5*time.Millisecond)},
		}},
	}
}

// warm is a stream's warm-up, and grace the time for its last bytes to arrive.
const (
	warm  = 200 * time.Millisecond
	grace = 10 * time.Second
	// lossyGrace is shorter: the data in a sender's buffer may take minutes on a lossy path.
	lossyGrace = 500 * time.Millisecond
)

// stream returns a stream with the session's settings.
func (s *session) stream(stack, congestion string, p lead.Path) lead.Stream {
	r := lead.Stream{
		Stack: stack, Path: p, Congestion: congestion, Warm: warm, For: s.span, Grace: grace,
	}
	if p.Loss > 0 {
		r.Grace = lossyGrace
	}
	return r
}

// trial returns a peer's measurement, or an error that says what this machine lacks for it.
func (s *session) trial(ctx context.Context, p *peer) (lead.Trial, error) {
	switch p.stack {
	case "raw-plain", "raw-mmsg", "raw-gso", "plane":
		return lead.Trial{Name: p.name, Run: (&lead.Ceiling{Stack: p.stack, For: s.span}).Run}, nil
	case "kernel":
		row, err := s.kernelRow(ctx, p.offloads)
		if err != nil {
			return lead.Trial{}, err
		}
		k := &lead.Kernel{Row: row, Stream: s.stream("kernel", p.congestion, p.path)}
		return lead.Trial{Name: p.name, Run: k.Run}, nil
	default:
		r := s.stream(p.stack, p.congestion, p.path)
		return lead.Trial{Name: p.name, Run: r.Run}, nil
	}
}

// measure runs our stack and a case's peers in turns.
func (s *session) measure(ctx context.Context, c *streamCase) ([]report.Row, []report.Skipped) {
	ours := s.stream("tidepool", c.congestion, c.path)
	trials := []lead.Trial{{Name: "tidepool", Run: ours.Run}}
	var peers, absent []peer
	var skipped []report.Skipped
	for _, p := range c.peers {
		if p.slow && !s.whole || !strings.Contains(c.as(&p)+" "+p.name, s.only) {
			continue
		}
		t, err := s.trial(ctx, &p)
		if err != nil {
			skipped = append(skipped, c.skip(&p, err))
			if p.path.Loss > 0 {
				absent = append(absent, p)
			}
			continue
		}
		trials, peers = append(trials, t), append(peers, p)
	}
	if len(peers)+len(absent) == 0 {
		return nil, skipped
	}
	all := s.turns.Run(ctx, c.name, trials...)
	var rows []report.Row
	for i, p := range peers {
		row, err := compare(c, &p, &all[0], &all[i+1])
		if err != nil {
			skipped = append(skipped, c.skip(&p, err))
			continue
		}
		if s.whole && len(rows) > 0 {
			row.SendNs, row.ReceiveNs = 0, 0 // the row before has our CPU time for these runs
			row.RTOs, row.TailProbes, row.Retransmits = nil, nil, nil
			row.LostRetransmits, row.Spurious, row.Drops = nil, nil, nil
			row.Bound = 0
		}
		rows = append(rows, row)
	}
	for _, p := range absent {
		row, err := newRow(c, &p, &all[0])
		if err == nil {
			err = againstBound(&row)
		}
		if err != nil {
			skipped = append(skipped, c.skip(&p, err))
			continue
		}
		rows = append(rows, row)
	}
	report.Weigh(rows)
	return rows, skipped
}

// againstBound compares a lossy stream with the computed bound. It is for machines on which the
// kernel cannot create namespaces.
func againstBound(r *report.Row) error {
	if r.Bound == 0 {
		return errors.New("the round trip was not measured, so the bound is unknown")
	}
	r.Note = "1.31/√p · MSS/RTT, which is Reno's, in place of " + r.Peer
	r.Peer, r.Goal, r.Their = "bound", 0, r.Bound
	r.Ratio = report.Round(r.Ours / r.Their)
	return nil
}

func (c *streamCase) skip(p *peer, err error) report.Skipped {
	return report.Skipped{Case: c.as(p), Peer: p.name, Skip: err.Error()}
}

func (c *streamCase) as(p *peer) string {
	if p.as != "" {
		return p.as
	}
	return c.name
}

// compare builds the row of one case and peer.
func compare(c *streamCase, p *peer, ours, theirs *lead.Samples) (report.Row, error) {
	r, err := newRow(c, p, ours)
	if err == nil {
		err = usable(theirs)
	}
	if err != nil {
		return report.Row{}, err
	}
	r.Their, r.TheirRuns = report.Round(theirs.Value()), values(theirs, value)
	r.TheirSendNs = report.Round(theirs.Median(sender))
	r.TheirReceiveNs = report.Round(theirs.Median(receiver))
	r.Ratio = report.Round(ours.Value() / theirs.Value())
	return r, nil
}

// newRow returns a row with our results, without the peer's.
func newRow(c *streamCase, p *peer, ours *lead.Samples) (r report.Row, err error) {
	if err := usable(ours); err != nil {
		return r, err
	}
	r = report.Row{
		Case: c.as(p), Peer: p.name, Unit: "MB/s", Goal: p.goal,
		Ours: report.Round(ours.Value()), OursRuns: values(ours, value),
		Measured: report.Measured{
			Case: c.name, Send: values(ours, sender), Receive: values(ours, receiver),
		},
		Ends: report.Ends{
			SendNs:    report.Round(ours.Median(sender)),
			ReceiveNs: report.Round(ours.Median(receiver)),
		},
	}
	explain(&r, ours, c.path.Loss)
	return r, nil
}

// usable rejects failed and empty runs.
func usable(s *lead.Samples) error {
	if s.Err != nil {
		return fmt.Errorf("no result: the run of %s failed: %w", s.Name, s.Err)
	}
	if s.Value() == 0 {
		return errors.New("no result: nothing arrived in the run of " + s.Name)
	}
	return nil
}

// The figures that a row takes from a run.
func value(s *lead.Sample) float64    { return s.Value }
func sender(s *lead.Sample) float64   { return s.Sender }
func receiver(s *lead.Sample) float64 { return s.Receiver }

func values(s *lead.Samples, of func(*lead.Sample) float64) (list []float64) {
	for i := range s.Runs {
		list = append(list, report.Round(of(&s.Runs[i])))
	}
	return list
}

// explain adds our counters, our round-trip time and the bound of a lossy path to a row.
func explain(r *report.Row, ours *lead.Samples, loss float64) {
	mean := func(f func(*lead.Sample) uint64) *float64 {
		var sum uint64
		for i := range ours.Runs {
			sum += f(&ours.Runs[i])
		}
		v := report.Round(float64(sum) / float64(len(ours.Runs)))
		return &v
	}
	r.RTOs = mean(func(s *lead.Sample) uint64 { return s.Path.RTOs })
	r.TailProbes = mean(func(s *lead.Sample) uint64 { return s.Path.TailProbes })
	r.Retransmits = mean(func(s *lead.Sample) uint64 { return s.Path.Retransmits })
	r.LostRetransmits = mean(func(s *lead.Sample) uint64 { return s.Path.LostRetransmits })
	r.Spurious = mean(func(s *lead.Sample) uint64 { return s.Path.Spurious })
	r.Drops = mean(func(s *lead.Sample) uint64 { return s.Drops })
	rtt := ours.Median(func(s *lead.Sample) float64 { return s.Path.RTT.Seconds() })
	r.RTTms = report.Round(rtt * 1e3)
	if loss > 0 && rtt > 0 {
		mss := ours.Median(func(s *lead.Sample) float64 { return float64(s.Path.MSS) })
		r.Bound = report.Round(1.31 / math.Sqrt(loss) * mss / rtt / 1e6)
	}
}
