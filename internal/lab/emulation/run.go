package emulation

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
	"github.com/tidepool-net/tidepool/internal/link"
)

// Options are the options of runs in real time.
type Options struct {
	// End is the command that runs Serve with Arms. Middle is the command that runs ServeMiddle.
	// Programs maps protocols to programs that implement an end of a flow.
	End, Middle []string
	Programs    map[plan.Protocol]string
	// Plan is the experiment of the cells. Play sets its Cell.
	Plan Plan
	// Printed is called with each line that an end prints, and its time; it may be nil.
	Printed func(at time.Duration, line string)
}

// readyTime limits the time in which processes open their sockets, and reportTime the time in which
// they report their results. beginAhead is the time from the message "go" to the start of the run.
// portTries is the number of attempts to find free ports.
const (
	readyTime  = 20 * time.Second
	beginAhead = 150 * time.Millisecond
	reportTime = 30 * time.Second
	portTries  = 3
)

// ErrProcess means that the processes of a run could not be started.
var ErrProcess = errors.New("cannot start the run in real time")

// run is a run in progress. It belongs to one goroutine.
type run struct {
	cell         *plan.Cell
	options      *Options
	trial        int
	seed         uint64
	record       bool
	children     []*child // the middle, then each flow's sender and receiver
	childMessage chan childMessage
	origin       time.Time
	over         int // number of ends that are finished or gone
	reports      []*report
	deaths       []error
}

type report struct {
	*Done
	ready    bool
	over     bool
	gone     bool
	err      error // why the process exited without a done message
	samples  []result.Sample
	segments []result.Segment
	progress []result.Point
	events   [2][]result.LinkEvent
}

// Play runs one trial of a cell. Trials count from 0. The trial reports whether it kept time. The
// record is nil unless it was requested. If ctx ends, Play stops the processes and returns ctx's
// cause. If an end dies during the run, its flow counts as unfinished. Play returns an error if the
// run could not start, a process reports an error, or the process in the middle dies.
func (o *Options) Play(ctx context.Context, cell *plan.Cell, trial int, record bool) (
	*result.Trial, *result.Record, error,
) {
	for try := 1; ; try++ {
		r := &run{
			cell: cell, options: o, trial: trial, seed: simulation.Seed(cell.Seed, trial),
			record: record,
		}
		err := r.play(ctx)
		if err == nil {
			t, rec := r.merge()
			return t, rec, nil
		}
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		// Another process may have taken a port in the meantime, so try other ports. A program that
		// violates the protocol would do so again.
		if try == portTries || !errors.Is(err, ErrProcess) || errors.Is(err, ErrProtocol) {
			return nil, nil, fmt.Errorf("%s: %w", cell.Name, err)
		}
	}
}

func (r *run) play(ctx context.Context) error {
	r.childMessage = make(chan childMessage)
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		cancel() // the run is over
		for _, c := range r.children {
			_ = c.in.Close() // stop all processes concurrently
		}
		for _, c := range r.children {
			c.end()
		}
	}()
	if err := r.start(inner); err != nil {
		return fmt.Errorf("%w: %w", ErrProcess, err)
	}
	err := r.await(ctx, readyTime, func() bool { return r.waitsFor((*report).isReady) == "" })
	if errors.Is(err, errLate) { // a second try would not help
		return fmt.Errorf("%s did not become ready: %w", r.waitsFor((*report).isReady), err)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProcess, err)
	}
	if len(r.deaths) > 0 {
		return fmt.Errorf("%w: %w", ErrProcess, errors.Join(r.deaths...))
	}
	r.origin = time.Now().Add(beginAhead)
	r.sendAll(order{Type: "go", At: r.origin.UnixNano()})
	limit := time.Until(r.origin) + r.cell.Duration
	ends := len(r.children) - 1
	err = r.await(ctx, limit, func() bool { return r.over == ends || r.reports[0].gone })
	if err != nil && !errors.Is(err, errLate) {
		return err
	}
	r.sendAll(order{Type: "stop"})
	err = r.await(ctx, reportTime, func() bool { return r.waitsFor((*report).ended) == "" })
	if errors.Is(err, errLate) {
		return fmt.Errorf("%s did not report its result: %w", r.waitsFor((*report).ended), err)
	}
	if err != nil {
		return err
	}
	if r.reports[0].Done == nil {
		return fmt.Errorf("the process of the path stopped: %w", errors.Join(r.deaths...))
	}
	return nil
}

// waitsFor returns the name of the first child that does not meet a condition; empty: all meet it.
func (r *run) waitsFor(as func(*report) bool) string {
	for i, one := range r.reports {
		if !as(one) {
			return r.children[i].name
		}
	}
	return ""
}

func (r *report) isReady() bool { return r.ready }

func (r *report) ended() bool { return r.Done != nil || r.gone }

func (r *run) sendAll(o order) {
	for _, c := range r.children {
		c.send(o)
	}
}

// errLate means that a wait has timed out.
var errLate = errors.New("timed out")

// await processes messages until a condition is true.
func (r *run) await(ctx context.Context, d time.Duration, so func() bool) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for !so() {
		select {
		case h := <-r.childMessage:
			if err := r.take(h); err != nil {
				return err
			}
		case <-timer.C:
			return errLate
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (r *run) take(h childMessage) (err error) {
	one := r.reports[h.from.index]
	finish := func() {
		if !one.over && h.from.index > 0 {
			one.over = true
			r.over++
		}
	}
	if h.gone {
		one.gone = true
		finish()
		if one.Done == nil {
			if h.err == nil {
				h.err = fmt.Errorf("%s stopped too early", h.from.name)
			}
			one.err = h.err
			r.deaths = append(r.deaths, h.err)
			if r.origin.IsZero() {
				return h.err
			}
		}
		return nil
	}
	switch m := h.Message; m.Type {
	case "ready":
		one.ready = true
	case "over":
		finish()
	case "log":
		if to := r.options.Printed; to != nil {
			var at time.Duration // time of the run; 0: before the run
			if !r.origin.IsZero() {
				at = max(0, time.Since(r.origin))
			}
			to(at, m.Text)
		}
	case "rows":
		err = one.rows(m)
	case "done":
		one.Done = &m.Done
		finish()
	case "error":
		err = fmt.Errorf("%s: %s", h.from.name, m.Text)
	default:
		err = fmt.Errorf("%s %w: type %q", h.from.name, ErrProtocol, m.Type)
	}
	return err
}

func (r *report) rows(m *Message) error {
	switch m.Table {
	case "samples":
		return addRows(&r.samples, m)
	case "segments":
		return addRows(&r.segments, m)
	case "progress":
		return addRows(&r.progress, m)
	case "events":
		return addRows(&r.events[min(max(0, m.Link), 1)], m)
	}
	return fmt.Errorf("%w: rows of unknown table %q", ErrProtocol, m.Table)
}

func addRows[T result.Row[T]](to *[]T, m *Message) error {
	rows, err := result.ParseRows[T](m.Table, []byte(m.CSV))
	*to = append(*to, rows...)
	return err
}

// start starts the processes and sends each its Start.
func (r *run) start(ctx context.Context) error {
	x := &r.cell.Experiment
	ports, err := link.FreePorts(4 * len(x.Flows))
	if err != nil {
		return err
	}
	udp := func() netip.AddrPort {
		p := ports[0]
		ports = ports[1:]
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(p))
	}
	common := Start{
		Type: "start", Duration: x.Duration.Seconds(), Warmup: x.Warmup.Seconds(),
		Seed: r.seed, Record: r.record, Plan: r.options.Plan,
	}
	common.Plan.Cell = r.cell.Index
	middle := common
	middle.Role = Middle
	var ends []Start
	for i := range x.Flows {
		for _, role := range []Role{Sender, Receiver} {
			e := common
			e.describe(x, i, role)
			e.Local, e.Remote = udp(), udp()
			e.LNX = lnxOf(&e)
			middle.Ports = append(middle.Ports, Port{
				Flow: i, Right: e.side(x) == simulation.Right, Local: e.Remote, Remote: e.Local,
			})
			ends = append(ends, e)
		}
	}
	if err := r.launch(ctx, "the process in the middle", r.options.Middle, &middle); err != nil {
		return err
	}
	for i := range ends {
		e := &ends[i]
		command := r.options.End
		if p := r.options.Programs[x.Flows[e.Flow].Protocol]; p != "" {
			command = []string{p}
		}
		name := fmt.Sprintf("the %s of flow %s", e.Role, e.Name)
		if err := r.launch(ctx, name, command, e); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) launch(ctx context.Context, name string, command []string, s *Start) error {
	c, err := startChild(ctx, name, command, r.childMessage)
	if err != nil {
		return err
	}
	c.index = len(r.children)
	r.children = append(r.children, c)
	r.reports = append(r.reports, &report{})
	c.send(s)
	return nil
}
