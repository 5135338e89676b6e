package simulation

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
	"github.com/tidepool-net/tidepool/internal/tcp/starlark"
)

type flow struct {
	spec             *plan.Flow
	run              *run
	index            int
	sender, receiver *sim.Host
	to               Side // side that receives the data
	// tx and rx are the two ends of the connection, or nil before it exists. documentApp is set if
	// the application is one of a founding document.
	tx, rx      *sim.Conn
	documentApp documentApp
	watched     int // number of connections of documentApp

	stats     SenderStats
	recorder  *FlowRecorder // recording of the flow; nil: the run is not recorded
	got       receiveCounts
	begun     clock.Time
	progress  clock.Time // when data last arrived
	completed clock.Time // when all data had arrived; Never: not yet
	ended     clock.Time // when the application was done; Never: not yet
	closed    int        // number of ends that are closed
	stopped   bool
	err       error
	corrupted string // error in the received data
	requests  []request
	asked     int        // number of requests so far
	asking    clock.Time // time of the last request
}

// receiveCounts counts the data that the receiving application received.
type receiveCounts struct {
	bytes uint64
	warm  uint64                     // bytes received in the warm-up, which goodput excludes
	parts [result.TrendParts]float64 // bytes received in each part of the measured time
}

var errUnsupported = errors.New("is not supported in virtual time")

func (f *flow) begin(now clock.Time) {
	f.begun, f.progress = now, now
	if err := f.beginApp(); err != nil {
		f.run.fail(err)
	}
}

func (f *flow) beginApp() (err error) {
	app := &f.spec.App
	if f.spec.Protocol == plan.TCP && app.Echo == nil && app.Burst == nil && app.Objects == nil &&
		app.Notebook == nil {
		return f.beginTCP()
	}
	if f.spec.Stop > 0 {
		return fmt.Errorf("flow %s: its application chooses when to stop: a stop time %w",
			f.spec.Name, errUnsupported)
	}
	if f.documentApp, err = f.attach(); err != nil {
		f.documentApp = nil
		return err
	}
	f.run.documentApps = append(f.run.documentApps, f)
	f.sender.Settle()
	f.receiver.Settle()
	return nil
}

func (f *flow) beginTCP() error {
	listens, dials, at := f.receiver, f.sender, f.to
	welcome := func(c *sim.Conn) sim.App {
		f.rx = c
		return &sink{flow: f}
	}
	var app sim.App = newSource(f)
	if f.spec.App.Requests > 0 {
		listens, dials, at = f.sender, f.receiver, f.to.Other()
		welcome = func(c *sim.Conn) sim.App {
			f.observeSender(c)
			return &responder{flow: f}
		}
		app = &requester{flow: f}
	}
	if _, err := listens.Listen(Port, 1, welcome); err != nil {
		return err
	}
	to := netip.AddrPortFrom(f.run.address(at, f.index, HostNumber), Port)
	_, err := dials.Dial(to, app)
	return err
}

func (f *flow) observeSender(c *sim.Conn) {
	f.tx = c
	c.TCP().SetProbe(func(s *tcp.Info) {
		fresh := f.stats.AddSample(0, s)
		if f.recorder != nil {
			f.recorder.Sample(f.run.since(s.Time), s, fresh)
		}
	})
}

// watch observes another sending connection of a document's application.
func (f *flow) watch(c *sim.Conn) {
	conn := f.watched
	f.watched++
	c.SetProbe(func(s *tcp.Info) { f.stats.AddSample(conn, s) })
}

func (f *flow) received(now clock.Time, n int) {
	f.got.bytes += uint64(n)
	f.progress = now
	if x := f.run.x; f.run.since(now) >= x.Warmup {
		measured := x.Duration - x.Warmup
		i := result.TrendParts * (f.run.since(now) - x.Warmup) / (measured + 1)
		f.got.parts[i] += float64(n)
	}
	if f.recorder != nil {
		f.recorder.Got(f.run.since(now), f.got.bytes)
	}
}

func (f *flow) complete(now clock.Time) {
	if f.completed == clock.Never {
		f.completed = now
	}
}

func (f *flow) close(now clock.Time, c *sim.Conn) {
	f.closed++
	if err := c.TCP().Err(); err != nil && f.err == nil {
		f.err = err
	}
	if f.closed == 2 || f.err != nil {
		f.end(now)
	}
}

func (f *flow) end(now clock.Time) {
	if f.ended != clock.Never {
		return
	}
	f.ended = now
	f.run.open--
}

// stop ends the flow, complete or not.
func (f *flow) stop(now clock.Time) {
	if f.ended != clock.Never {
		return
	}
	f.stopped = true
	f.end(now)
	for _, c := range []*sim.Conn{f.tx, f.rx} {
		if c != nil && c.TCP().State() != tcp.StateClosed {
			c.Wake(clock.Never)
			c.Abort()
			c.Host().Settle()
		}
	}
}

func (f *flow) endWarmup(now clock.Time) {
	f.got.warm = f.got.bytes
	f.stats.EndWarmup(now)
}

// Label returns the setting that distinguishes the flow from others of its protocol.
func Label(f *plan.Flow) string {
	app := &f.App
	switch {
	case app.Echo != nil && f.Protocol == plan.RCP:
		return fenceLabel(app.Echo.RCP.Window)
	case app.Burst != nil:
		return fenceLabel(app.Burst.RCP.Window)
	case app.Objects != nil && f.Protocol != plan.QUIC:
		return app.Objects.Arm.String()
	case app.Notebook != nil && app.Notebook.Fixed > 0:
		return "notebook fixed"
	case app.Notebook != nil:
		return "notebook tahoe"
	case f.Protocol != plan.TCP:
		return string(f.Protocol)
	}
	return algorithm(f)
}

func fenceLabel(window bool) string {
	if window {
		return "window"
	}
	return "fence"
}

// tcpConfig returns the TCP configuration of one side of a flow. The first error of a script ends
// the run. Only the sender's script prints and records: the other end sends requests at most.
func (f *flow) tcpConfig(s Side) (tcp.Config, error) {
	h := starlark.Hooks{Failed: func(err error) {
		at := f.run.since(f.run.world.Now()).Seconds()
		f.run.fail(fmt.Errorf("flow %s, at %.3f s: %w", f.spec.Name, at, err))
	}}
	if (s == Left) == f.spec.Upward {
		return TCPConfig(f.spec, h)
	}
	if to := f.run.printed; to != nil {
		h.Printed = func(_ clock.Time, line string) {
			to(f.run.since(f.run.world.Now()), f.spec.Name+": "+line)
		}
	}
	h.Recorded = func(name string, value float64) {
		if f.recorder != nil {
			f.recorder.Own(name, value)
		}
	}
	return TCPConfig(f.spec, h)
}

// TCPConfig returns the TCP configuration of an end of a flow. h has the hooks for the flow's
// Starlark file, if there is one.
func TCPConfig(f *plan.Flow, h starlark.Hooks) (tcp.Config, error) {
	cfg := f.TCP
	if f.Protocol != plan.TCP || f.Ssthresh == 0 && f.Script == nil {
		return cfg, nil
	}
	name := algorithm(f)
	var create congestion.Make
	var err error
	if f.Script != nil {
		create = f.Script.Begin(h).New
	} else if create, err = congestion.Find(cfg.Algorithms, name); err != nil {
		return cfg, err
	}
	cfg.Algorithms = map[string]congestion.Make{name: bounded(f, create)}
	return cfg, nil
}

func algorithm(f *plan.Flow) string {
	if f.TCP.Recovery.Congestion == "" {
		return "cubic"
	}
	return f.TCP.Recovery.Congestion
}

// bounded makes an algorithm start with the flow's ssthresh.
func bounded(f *plan.Flow, create congestion.Make) congestion.Make {
	return func(cfg congestion.Config) congestion.Controller {
		if cfg.Ssthresh == 0 && f.Ssthresh > 0 {
			cfg.Ssthresh = f.Ssthresh * cfg.MSS
		}
		return create(cfg)
	}
}
