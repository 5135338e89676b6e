package plan

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/formula"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/tcp/starlark"
)

// Experiment is one cell of an experiment file. Defaults are set, names are resolved, and
// bandwidth-delay products and service times are converted into bytes and times.
type Experiment struct {
	Name  string
	About string // one line, for lists
	// Duration is the virtual time of a run. At its end, all flows end. A flow that still has data
	// to send counts as unfinished, unless its data has no end.
	Duration time.Duration
	// Warmup is the time at the start that averages exclude.
	Warmup time.Duration
	Seed   uint64
	Trials int
	// HostJitter is the maximum random delay of each packet at its sender. Packets remain in order.
	// Without it, flows in a deterministic simulation are locked in phase (Floyd and Jacobson
	// 1992). Receivers' acknowledgments are not delayed: docs/decisions/0003-host-jitter.md.
	HostJitter time.Duration
	Path       Path
	Flows      []Flow
	// Metrics are the columns of the table and the panels of the figures, in order; nil: the
	// default ones.
	Metrics []result.Metric
	Expect  []Expectation
}

// Path is the bottleneck link between the two sides. Down leads from the left side to the right,
// which is the direction of data unless a flow is Upward.
type Path struct {
	Down, Up netem.Config
	MTU      int  // MTU in bytes
	IPv6     bool // IPv6 instead of IPv4
}

func (p *Path) headers() int {
	if p.IPv6 {
		return 60
	}
	return 40
}

// Flow is one data transfer over the path.
type Flow struct {
	Name     string // unique name in tables and figures
	Item     int    // index in the file's list of flows. A copy has the index of its original.
	Protocol Protocol
	// Upward flows send their data from the right to the left.
	Upward bool
	// Start is when the flow begins, and Stop is when it ends; 0: at the end of the run.
	Start, Stop time.Duration
	// Delay is the one-way delay of each link of the flow's own hosts, in addition to the path's.
	Delay time.Duration
	// TCP configures both ends of a TCP flow. The simulated world sets Route and Secret.
	TCP tcp.Config
	// MSS is TCP's maximum segment size, which includes the options of the segment. The default
	// follows from the path's MTU.
	MSS int
	// Ssthresh is TCP's initial slow start threshold in segments; 0: no threshold.
	Ssthresh int
	// Script is the congestion control if that is a Starlark file; TCP.Congestion is then the
	// file's base name. Nil: TCP.Congestion names a built-in one.
	Script *starlark.Program
	App    App
}

// Protocol is the protocol of a flow.
type Protocol string

// These are the protocols.
const (
	TCP      Protocol = "tcp"
	RCP      Protocol = "rcp"      // transport of founding document 000
	RDT      Protocol = "rdt"      // transport of founding document 003
	Notebook Protocol = "notebook" // sender of founding document 002, as published
	QUIC     Protocol = "quic"     // supported in real time only
)

// App describes a flow's application. The zero App sends as much as possible.
type App struct {
	// Size is the number of bytes to send; 0: no end.
	Size uint64
	// Rate limits writes, in bits per second; 0: the application writes as much as the connection
	// accepts.
	Rate int64
	// The application writes for the time On, then pauses for the time Off, and repeats this. If
	// Off is 0, it never pauses.
	On, Off time.Duration
	// Requests is the number of times that the receiver requests Size bytes over one connection,
	// each Gap after the end of the last response. 0: the sender sends Size bytes once, without a
	// request.
	Requests int
	Gap      time.Duration
	// At most one of these is set. If one is, the fields above have no effect.
	// Echo is the application of founding document 000, over RCP or TCP; Burst is its thought
	// experiment, over RCP. Objects is the application of founding document 003, over RDT or TCP.
	// Notebook is the application of founding document 002, with the protocol of the same name.
	Echo     *workload.EchoConfig
	Burst    *workload.BurstConfig
	Objects  *workload.ObjectsConfig
	Notebook *NotebookApp
}

// NotebookApp is the published sender and receiver of founding document 002. A Duration of 0 stands
// for the run's duration.
type NotebookApp struct {
	workload.NotebookConfig
	// Fixed is the size of a fixed window in segments; 0: Tahoe.
	Fixed int
	Tahoe workload.TahoeConfig
}

// Wanted returns the number of bytes to send in total; 0: no end.
func (a *App) Wanted() uint64 { return a.Size * uint64(max(1, a.Requests)) }

// RTT returns the round-trip time of a flow without queueing delay.
func (x *Experiment) RTT(f *Flow) time.Duration {
	return x.Path.Down.Delay + x.Path.Up.Delay + 4*f.Delay
}

// HostMTU returns the MTU of a flow's hosts. It makes TCP announce the flow's MSS.
func (x *Experiment) HostMTU(f *Flow) int {
	if f.MSS > 0 {
		return min(f.MSS+x.Path.headers(), x.Path.MTU)
	}
	return x.Path.MTU
}

// HostLink returns the link from the flow's sender or receiver to its router.
func (x *Experiment) HostLink(f *Flow, sender bool) netem.Config {
	c := netem.Config{Delay: f.Delay}
	if j := x.HostJitter / 2; j > 0 && sender {
		c.Delay, c.Jitter = f.Delay+j, netem.UniformJitter(j)
	}
	return c
}

// Expectation is an expected result of an experiment. It applies to each cell that Where selects.
// If each of its metrics selects a value of a variable, as in utilisation(cubic) >
// utilisation(reno), it applies once to all cells that differ only in that variable.
type Expectation struct {
	About string // description for people
	// Where selects cells by values of swept variables; empty: all cells.
	Where []Setting
	// Claim compares the checked value with the expected one.
	Claim *formula.Claim
	// Published is a paper's value if it differs from the theoretical value, and Why explains the
	// difference.
	Published, Why string
	// Source is the source of the expected value: an RFC's section, a paper's figure, a formula,
	// ns-3, or OwnRegression. Because gives the reason for the tolerance or the bound.
	Source, Because string
	Line            int // line in the file
}

// OwnRegression is the Source of an expectation that only repeats what this program printed
// before. It shows that a result has changed, not that it is right.
const OwnRegression = "own regression"

// Own reports whether the expectation is an own regression.
func (e *Expectation) Own() bool { return e.Source == OwnRegression }

// Setting is a swept key and its value in a cell, both as written in the file: "flows.0.cc",
// "reno". Name is its short name in expectations: "cc".
type Setting struct {
	Key   string `json:"key"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Cell is one point of a sweep's cross product.
type Cell struct {
	Index int
	Set   []Setting // values of swept variables; empty without a sweep
	Experiment
}

// endless returns a flow that would stop virtual time, or nil. Such a flow always has more data to
// send, and gets each acknowledgment at the instant at which it sends the packet.
func (x *Experiment) endless() *Flow {
	p := &x.Path
	timeless := p.Down.Delay+p.Up.Delay+x.HostJitter == 0 && p.Down.Rate == nil &&
		p.Up.Rate == nil && p.Down.Jitter == nil && p.Up.Jitter == nil
	for i := range x.Flows {
		f := &x.Flows[i]
		if timeless && f.Delay == 0 && f.Protocol == TCP && f.App.Size == 0 && f.App.Rate == 0 &&
			f.App.Echo == nil && f.App.Objects == nil {
			return f
		}
	}
	return nil
}

// Warnings returns reasons to doubt the results.
func Warnings(cells []Cell) []string {
	for i := range cells {
		if c := &cells[i]; c.HostJitter == 0 && len(c.Flows) > 1 && c.Path.Down.Rate != nil {
			return []string{fmt.Sprintf("host_jitter is 0: %d flows can lock in phase, and "+
				"their shares are then artifacts (Floyd and Jacobson 1992); "+
				"set host_jitter to 1svc", len(c.Flows))}
		}
	}
	return nil
}

// An application with a rate writes the data of pieceTime at once, but at least pieceBytes.
const (
	pieceTime  = time.Millisecond
	pieceBytes = 1400
)

// backlog is the maximum number of unsent bytes of an application that pauses. The limit is needed
// because the application cannot take back written data.
const backlog = 64 << 10

// MayWrite returns how many bytes an application may write, given the time since its start, the
// bytes that it has written, the total size, and the free buffer space. If n is 0, it may write
// after wait; a wait of 0 means as soon as less data is unsent.
func (a *App) MayWrite(
	elapsed time.Duration, written, size, free uint64, unsent func() uint64,
) (n uint64, wait time.Duration) {
	n = min(size-written, free)
	if a.Off > 0 {
		if pause := a.pause(elapsed); pause > 0 {
			return 0, pause
		}
		if unsent() >= backlog {
			return 0, 0
		}
		n = min(n, backlog)
	}
	if a.Rate > 0 {
		paced, wait := a.paced(elapsed, written, size)
		return min(n, paced), wait
	}
	return n, 0
}

// pause returns how much longer the application pauses, given the time since its start. Off must
// not be 0.
func (a *App) pause(elapsed time.Duration) time.Duration {
	if at := elapsed % (a.On + a.Off); at >= a.On {
		return a.On + a.Off - at
	}
	return 0
}

// paced returns how many of size bytes an application with a rate may write, given the time since
// its start and the bytes already sent. If n is 0, the application may write more after wait.
func (a *App) paced(elapsed time.Duration, sent, size uint64) (n uint64, wait time.Duration) {
	due := a.due(elapsed)
	piece := min(max(pieceBytes, volume(a.Rate, pieceTime)), size-sent)
	if due < sent+piece {
		return 0, time.Duration(float64(sent+piece-due)*8e9/float64(a.Rate)) + 1
	}
	return due - sent, 0
}

// due returns the number of bytes that an application with a rate should have written, given the
// time since its start.
func (a *App) due(elapsed time.Duration) uint64 {
	if a.Off > 0 {
		cycle := a.On + a.Off
		pauses := int64(elapsed / cycle)
		elapsed = max(elapsed-time.Duration(pauses)*a.Off-max(0, elapsed%cycle-a.On), 0)
	}
	return volume(a.Rate, elapsed)
}

// volume returns the number of bytes that a rate in bit/s transfers in a time.
func volume(rate int64, d time.Duration) uint64 {
	hi, lo := bits.Mul64(uint64(rate), uint64(d))
	n, _ := bits.Div64(hi, lo, 8e9)
	return n
}
