//go:build linux

package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/bench/report"
)

// points checks a report against the seven points of the performance goals.
func points(r *report.Report) []report.Check {
	p := checklist{r: r}
	p.ratio(1, "clean, to gVisor tuned", "clean", "gvisor-tuned")
	p.ratio(1, "clean, to the kernel without offloads", "kernel", "kernel-no-offloads")
	p.ratio(1, "clean, to the data plane without a protocol", "plane", "plane")
	p.ratio(1, "clean, to raw trains", "raw", "raw-gso")
	if row, ok := r.Row("clean", "gvisor-tuned"); ok {
		p.add(1, "CPU of the sender, ns per byte", row.SendNs, 0.6, true)
		p.add(1, "CPU of the receiver, ns per byte", row.ReceiveNs, 0.6, true)
	}
	p.ratio(2, "through a router, to gVisor tuned behind the relay", "router", "gvisor-tuned")
	for _, name := range []string{"clean6", "router6"} {
		p.ratio(2, name+", to gVisor tuned over IPv6", name, "gvisor-tuned")
		p.ratio(2, name+", to IPv4", name, "ipv4")
	}
	p.fact(2, "router, packets of 1400 B a second of one core", 1e6, false)
	for _, cc := range []string{"cubic", "reno", "bbr"} {
		name := "loss2-" + cc
		if cc == "cubic" {
			name = "loss2"
		}
		p.ratio(3, "2 % loss each way, "+cc+" to the kernel's", name, "kernel-"+cc)
	}
	p.tenPercent()
	p.fact(3, "10 % loss each way: megabytes of a file that arrived", 5, false)
	p.clean("clean", "gvisor-tuned")
	p.clean("router", "gvisor-tuned")
	if row, ok := r.Row("idle", "gvisor-tuned"); ok {
		p.add(5, "heap of an idle connection, bytes", row.Ours, 2048, true)
	}
	if row, ok := r.Row("idle-used", "gvisor-tuned"); ok {
		p.add(5, "heap of a connection that carried 16 KiB, bytes", row.Ours, 2048, true)
	}
	p.fact(5, "100,000 connections: those established", 100_000, false)
	p.fact(5, "100,000 connections: goroutines of the node", 100, true)
	p.ratio(5, "connect and close, CPU to gVisor's", "connect-close", "gvisor-tuned")
	p.ratio(5, "64 B and back, CPU to gVisor's", "request-reply", "gvisor-tuned")
	var cells []float64
	for _, f := range r.Facts {
		switch {
		case strings.HasPrefix(f.Name, virtual+", World"):
			p.add(6, f.Name+", packets a second", f.Value, 1e6, false)
		case strings.HasPrefix(f.Name, virtual):
			cells = append(cells, f.Value)
		case f.Name == slowestPreset:
			p.add(6, f.Name+", s", f.Value, 5, true)
		case strings.HasPrefix(f.Name, allocated):
			p.add(7, f.Name, f.Value, 0, true)
		}
	}
	if len(cells) > 0 {
		p.add(6, virtual+", the cell in the middle, packets a second", middle(cells), 1e6, false)
		p.list[len(p.list)-1].Note = "the slowest: " + report.Figure(slices.Min(cells))
	}
	slices.SortStableFunc(p.list, func(a, b report.Check) int {
		return cmp.Compare(a.Point, b.Point)
	})
	return p.list
}

// checklist collects the checks.
type checklist struct {
	r    *report.Report
	list []report.Check
}

func (p *checklist) add(point int, what string, got, goal float64, atMost bool) {
	p.list = append(p.list, report.Check{
		Point: point, What: what, Got: got, Goal: goal, AtMost: atMost, Known: true,
	})
}

// ratio checks a row's ratio against the goal in the row.
func (p *checklist) ratio(point int, what, name, peer string) {
	row, ok := p.r.Row(name, peer)
	if !ok {
		p.list = append(p.list, report.Check{Point: point, What: what})
		return
	}
	p.add(point, what, row.Ratio, row.Goal, row.LessIsBetter)
	p.list[len(p.list)-1].Note = row.Note
}

func (p *checklist) fact(point int, name string, goal float64, atMost bool) {
	f, ok := p.r.Fact(name)
	if !ok {
		p.list = append(p.list, report.Check{Point: point, What: name, Goal: goal, AtMost: atMost})
		return
	}
	p.add(point, name, f.Value, goal, atMost)
}

// tenPercent compares our best algorithm with the kernel's best at 10 % loss.
func (p *checklist) tenPercent() {
	var ours, theirs float64
	for _, cc := range []string{"cubic", "reno", "bbr"} {
		for _, name := range []string{"loss10", "loss10-" + cc} {
			if row, ok := p.r.Row(name, "kernel-"+cc); ok {
				ours, theirs = max(ours, row.Ours), max(theirs, row.Their)
			}
		}
	}
	const what = "10 % loss each way, the best to the kernel's best"
	if theirs == 0 {
		p.list = append(p.list, report.Check{Point: 3, What: what, Goal: 1})
		return
	}
	p.add(3, what, ours/theirs, 1, false)
}

// clean requires that a path without loss sees no retransmission and no drop in our queues.
func (p *checklist) clean(name, peer string) {
	row, ok := p.r.Row(name, peer)
	if !ok {
		return
	}
	p.add(4, name+": segments retransmitted, per run", *row.Retransmits, 0, true)
	p.add(4, name+": packets dropped in our queues, per run", *row.Drops, 0, true)
}
