package plan

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/tcp/starlark"
)

// Experiment is one cell of an experiment file. Defaults are set, names are resolved, and numbers
// of round trips and bandwidth-delay products are converted into times and bytes.
type Experiment struct {
	Name  string
	About string // one line, for a list
	// Duration is how much virtual time a run has. Flows without an end are over then, and
	// one with an end that has not come to it is counted as unfinished.
	Duration time.Duration
	// Warmup is left out of the means.
	Warmup time.Duration
	Seed   uint64
	Trials int
	// HostJitter delays what the sender of each flow sends by up to so much, each packet by another
	// time, in order. Without it a deterministic simulation locks flows in phase (Floyd and
	// Jacobson 1992). Receivers' acknowledgments are not delayed:
	// docs/decisions/0003-host-jitter.md.
	HostJitter time.Duration
	Path       Path
	Flows      []Flow
	// Metrics are the columns of its table and the panels of its figures, in their order; nil:
	// those that say most.
	Metrics []result.Metric
	Expect  []Expectation
}

// Path is the bottleneck, with all that is between the two sides. Down leads from the left
// side to the right one, which is the way that data takes unless a flow says otherwise.
type Path struct {
	Down, Up netem.Config
	MTU      int // bytes
}

// Flow is one conversation over the path.
type Flow struct {
	Name     string // what tables and figures call it: unique
	Item     int    // of the file's list of flows, that it is, or is a copy of
	Protocol Protocol
	// Upward flows send their data from the right to the left.
	Upward bool
	// Start is when it begins, Stop when it ends whatever it has reached; 0: with the run.
	Start, Stop time.Duration
	// Delay is the wire of its own hosts, each way, on top of the path's.
	Delay time.Duration
	// TCP is how both ends are, if the protocol is TCP. Route and Secret are the world's.
	TCP tcp.Config
	// MSS is the largest segment of TCP as its option has it: options of the segment's own
	// count in it. Without a word in the file it is what the path's MTU has room for.
	MSS int
	// Ssthresh is TCP's initial slow start threshold in segments; 0: none.
	Ssthresh int
	// Script is TCP's congestion control if that is a Starlark file, whose name without its
	// folder TCP.Congestion is then; nil: it is tcp's own of that name.
	Script *starlark.Program
	App    App
}

// Protocol says what a flow speaks.
type Protocol string

// The protocols.
const (
	TCP      Protocol = "tcp"
	RCP      Protocol = "rcp"      // founding document 000
	RDT      Protocol = "rdt"      // founding document 003
	Notebook Protocol = "notebook" // founding document 002, as published
	QUIC     Protocol = "quic"     // in real time only
)

// App is what a flow's application does. The zero App sends as much as it can.
type App struct {
	// Size is how many bytes it sends; 0: it does not end.
	Size uint64
	// Rate paces what it writes, in bits a second; 0: it writes what the connection takes.
	Rate int64
	// On and Off alternate: it writes for the one and rests for the other. Zero: always on.
	On, Off time.Duration
	// Requests is how often the other side asks for Size bytes, Gap after it had the last of
	// the ones before, over one connection; 0: once, unasked.
	Requests int
	Gap      time.Duration
	// Each of these is an application of its own that all above has no part in; nil: it is not
	// it. Echo is founding document 000's, over RCP or TCP, and Burst its thought experiment,
	// over RCP. Objects is founding document 003's, over RDT, or over TCP by the other arms.
	// Notebook is founding document 002's, and its protocol is called so, too.
	Echo     *workload.EchoConfig
	Burst    *workload.BurstConfig
	Objects  *workload.ObjectsConfig
	Notebook *NotebookApp
}

// NotebookApp is a sender of founding document 002 as published, with its receiver. Its
// Duration, if that is 0, is the run's.
type NotebookApp struct {
	workload.NotebookConfig
	// Fixed is a fixed window in segments; 0: Tahoe.
	Fixed int
	Tahoe workload.TahoeConfig
}

// Wanted is how many bytes it sends in all; 0: it does not end.
func (a *App) Wanted() uint64 { return a.Size * uint64(max(1, a.Requests)) }

// RTT is the round trip of a flow without a queue.
func (x *Experiment) RTT(f *Flow) time.Duration {
	return x.Path.Down.Delay + x.Path.Up.Delay + 4*f.Delay
}

// HostMTU is that of a flow's hosts: TCP's option then has the flow's largest segment.
func (x *Experiment) HostMTU(f *Flow) int {
	if f.MSS > 0 {
		return min(f.MSS+tcpIPHeaders, x.Path.MTU)
	}
	return x.Path.MTU
}

// HostLink is the link from a flow's host, the sender or the receiver, to its router.
func (x *Experiment) HostLink(f *Flow, sender bool) netem.Config {
	c := netem.Config{Delay: f.Delay}
	if j := x.HostJitter / 2; j > 0 && sender {
		c.Delay, c.Jitter = f.Delay+j, netem.UniformJitter(j)
	}
	return c
}

// Expectation is an expected result of an experiment. It is checked in each cell that Where
// selects, with means over the cell's trials. If each metric in it selects the value of a variable,
// as in utilisation(cubic) > utilisation(reno), cells that differ only in that variable are checked
// once.
type Expectation struct {
	About string // for a person
	// Where selects cells by values of swept variables; empty: all.
	Where []Setting
	// Value is the value that is checked, and Is the expected one: formulas of internal/lab/formula
	// that compile in the File's Scope. If the Relation is Holds, Value is a Claim.
	Value, Is string
	// Relation compares them.
	Relation Relation
	// Within is how far Value may be off, as a share of Is, or in its unit if it is Absolute.
	Within   float64
	Absolute bool
	// Published is what a paper says where it differs from what theory says, and Why it does.
	Published, Why string
	// Source is the source of the expected value: an RFC's section, a paper's figure, a formula,
	// ns-3, or OwnRegression. Because gives the reason for the tolerance or the bound.
	Source, Because string
	Line            int // in the file
}

// OwnRegression is the Source of an expectation that only repeats what this program printed
// before. It shows that a result has changed, not that it is right.
const OwnRegression = "own regression"

// Own reports whether the expectation is an own regression.
func (e *Expectation) Own() bool { return e.Source == OwnRegression }

// Relation is the required relation of a value to the expected one.
type Relation string

// The relations.
const (
	Equals  Relation = "is"
	AtLeast Relation = "at least"
	AtMost  Relation = "at most"
	Above   Relation = "above"
	Below   Relation = "below"
	// Holds is of a Value that is a comparison of its own, such as a > b > c. There is no Is.
	Holds Relation = "holds"
)

// Setting is one key of the file with the value that it has in a cell, both as written:
// "flows.0.cc", "reno". Name is what expectations call it: "cc".
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

// endless returns a flow that would stop virtual time, or nil: it has always more to send, and each
// packet is answered at the same instant.
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

// Warnings are what a person should know before he believes what comes out, each once.
func Warnings(cells []Cell) []string {
	var list []string
	for i := range cells {
		if c := &cells[i]; c.HostJitter == 0 && len(c.Flows) > 1 && c.Path.Down.Rate != nil {
			list = append(list, fmt.Sprintf("host_jitter is 0: %d flows can lock in phase, and "+
				"their shares are then artifacts (Floyd and Jacobson 1992); "+
				"set host_jitter to 1svc",
				len(c.Flows)))
			break
		}
	}
	return list
}

// An application with a rate writes pieces: of pieceTime at its rate, or of pieceBytes if that is
// more.
const (
	pieceTime  = time.Millisecond
	pieceBytes = 1400
)

// Backlog is how much an application that rests leaves unsent at most, in bytes: what it has
// written it cannot take back.
const Backlog = 64 << 10

// Rest is how long an application still rests, so long after it began; 0: it is its turn.
func (a *App) Rest(elapsed time.Duration) time.Duration {
	if a.Off > 0 {
		if at := elapsed % (a.On + a.Off); at >= a.On {
			return a.On + a.Off - at
		}
	}
	return 0
}

// Paced is how many of size bytes an application with a rate may write, so long after it began and
// having written sent of them. If that is 0 there will be some after wait.
func (a *App) Paced(elapsed time.Duration, sent, size uint64) (n uint64, wait time.Duration) {
	due := a.due(elapsed)
	piece := min(max(pieceBytes, volume(a.Rate, pieceTime)), size-sent)
	if due < sent+piece {
		return 0, time.Duration(float64(sent+piece-due)*8e9/float64(a.Rate)) + 1
	}
	return due - sent, 0
}

// due is how much is to be written in the time since the beginning.
func (a *App) due(elapsed time.Duration) uint64 {
	if a.Off > 0 {
		cycle := a.On + a.Off
		rests := int64(elapsed / cycle)
		elapsed = max(elapsed-time.Duration(rests)*a.Off-max(0, elapsed%cycle-a.On), 0)
	}
	return volume(a.Rate, elapsed)
}

// volume is how many bytes a rate in bits a second comes to in a while.
func volume(rate int64, d time.Duration) uint64 {
	hi, lo := bits.Mul64(uint64(rate), uint64(d))
	n, _ := bits.Div64(hi, lo, 8e9)
	return n
}
