package emulation

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"sync"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
)

// Role is what a process does in a run.
type Role string

// The roles.
const (
	Sender   Role = "sender" // of the flow's data
	Receiver Role = "receiver"
	Middle   Role = "middle"
)

// Start tells a process who it is. Times are seconds from the beginning of the run.
type Start struct {
	Type     string `json:"type"` // start
	Role     Role   `json:"role"`
	Protocol string `json:"protocol,omitempty"`
	Flow     int    `json:"flow"` // counted from 0
	Name     string `json:"name,omitempty"`
	// Host is its own address, Peer the other end's, Gateway the router between; Port is where
	// the end that does not dial listens. MTU is that of its link.
	Host    netip.Addr `json:"host,omitzero"`
	Peer    netip.Addr `json:"peer,omitzero"`
	Gateway netip.Addr `json:"gateway,omitzero"`
	Port    uint16     `json:"port,omitempty"`
	MTU     int        `json:"mtu,omitempty"`
	// Local is the UDP address that it binds, and Remote the one that its packets go to.
	Local  netip.AddrPort `json:"local,omitzero"`
	Remote netip.AddrPort `json:"remote,omitzero"`
	LNX    string         `json:"lnx,omitempty"` // all of that, as a node's file
	// Begin is when the flow begins, Stop when it ends whatever it has reached; 0: with the run,
	// which is over after Duration. Means leave Warmup out.
	Begin    float64 `json:"begin"`
	Stop     float64 `json:"stop,omitempty"`
	Duration float64 `json:"duration"`
	Warmup   float64 `json:"warmup,omitempty"`
	Size     uint64  `json:"size,omitempty"` // bytes to be sent; 0: as much as time allows
	Seed     uint64  `json:"seed"`
	Record   bool    `json:"record,omitempty"` // rows are wanted
	// Plan has all the rest.
	Plan  Plan   `json:"plan"`
	Ports []Port `json:"ports,omitempty"` // the middle's
}

// Plan is an experiment as it was resolved, with the files that it names.
type Plan struct {
	Document string            `json:"document"`
	Files    map[string][]byte `json:"files,omitempty"` // base64
	Cell     int               `json:"cell"`
}

// Port is where the middle meets an end.
type Port struct {
	Flow   int            `json:"flow"`
	Right  bool           `json:"right,omitempty"` // on that side
	Local  netip.AddrPort `json:"local"`
	Remote netip.AddrPort `json:"remote"`
}

type order struct {
	Type string `json:"type"`         // go, stop
	At   int64  `json:"at,omitempty"` // of go: nanoseconds since 1970
}

// Message is what a process says.
type Message struct {
	Type  string `json:"type"`            // ready, over, rows, log, done, error
	Text  string `json:"text,omitempty"`  // of a log or an error
	Table string `json:"table,omitempty"` // of rows: samples, segments, progress, events
	Link  int    `json:"link,omitempty"`  // of events: 0 down, 1 up
	CSV   string `json:"csv,omitempty"`   // of rows
	Done         // of done
}

// Done is what a process has come to.
type Done struct {
	// Finished says that what had an end came to it, as far as this process knows; Note what
	// happened if not.
	Finished bool          `json:"finished,omitempty"`
	Note     string        `json:"note,omitempty"`
	Values   result.Values `json:"values,omitempty"`
	// Until is when the flow was over for it, in seconds; 0: it was not.
	Until   float64         `json:"until,omitempty"`
	Objects []result.Object `json:"objects,omitempty"`
	MSS     int             `json:"mss,omitempty"`
	Own     []string        `json:"own,omitempty"` // what a script recorded: columns of samples
	Late    Lateness        `json:"late,omitzero"`
	// Dropped is how many packets its sockets, or the kernel's queues behind them, had no room
	// for.
	Dropped uint64 `json:"dropped,omitempty"`
	// Thinned says that rows are fewer than there were.
	Thinned bool `json:"thinned,omitempty"`
	// Tallies, Links and Marks are the middle's.
	Tallies []simulation.Tally  `json:"tallies,omitempty"`
	Links   []result.LinkRecord `json:"links,omitempty"`
	Marks   []result.Mark       `json:"marks,omitempty"`
	Notes   []string            `json:"notes,omitempty"`
	Rate    float64             `json:"rate,omitempty"`
}

// maxLine bounds a line of the protocol, and rowsAtATime what is in one.
const (
	maxLine     = 16 << 20
	rowsAtATime = 4096
)

// ErrProtocol is the error of a process that says what makes no sense.
var ErrProtocol = errors.New("sent an invalid message")

// speaker writes messages, a line each.
type speaker struct {
	mu sync.Mutex
	to *json.Encoder
}

func newSpeaker(w io.Writer) *speaker {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return &speaker{to: e}
}

// say writes a message. A write error is ignored: a parent that stopped reading has closed our
// input, too, which ends this process.
func (s *speaker) say(m *Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.to.Encode(m)
}

// sayRows writes the rows of a table, of samples with a script's own columns.
func sayRows[T result.Row](s *speaker, table string, link int, rows []T, own ...string) {
	for len(rows) > 0 {
		n := min(rowsAtATime, len(rows))
		s.say(&Message{
			Type: "rows", Table: table, Link: link,
			CSV: string(result.FormatRows(rows[:n], own...)),
		})
		rows = rows[n:]
	}
}

// orders are what a process hears after its Start. The channel is closed when its input ends.
func orders(in *bufio.Scanner) <-chan order {
	list := make(chan order, 1)
	go func() {
		defer close(list)
		for in.Scan() {
			var o order
			if json.Unmarshal(in.Bytes(), &o) != nil {
				return
			}
			list <- o
		}
	}()
	return list
}

func hear(r io.Reader) (*Start, *plan.Cell, *bufio.Scanner, error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	if !in.Scan() {
		return nil, nil, nil, fmt.Errorf("reading the start message from standard input: %w", orEOF(in.Err()))
	}
	s := new(Start)
	if err := json.Unmarshal(in.Bytes(), s); err != nil {
		return nil, nil, nil, fmt.Errorf("start message on standard input: %w", err)
	}
	if s.Type != "start" {
		return nil, nil, nil, fmt.Errorf("standard input begins with %q: expected start", s.Type)
	}
	cell, err := s.Plan.cell()
	return s, cell, in, err
}

func orEOF(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (s *Start) side(x *plan.Experiment) simulation.Side {
	if (s.Role == Sender) == x.Flows[s.Flow].Upward {
		return simulation.Right
	}
	return simulation.Left
}

// describe sets the identity and the task of one end of a flow.
func (s *Start) describe(x *plan.Experiment, flow int, role Role) {
	f := &x.Flows[flow]
	s.Role, s.Flow, s.Name, s.Protocol = role, flow, f.Name, string(f.Protocol)
	side := s.side(x)
	s.Host = side.Address(flow, simulation.HostNumber)
	s.Gateway = side.Address(flow, simulation.RouterNumber)
	s.Peer = side.Other().Address(flow, simulation.HostNumber)
	s.Port = simulation.Port
	s.MTU = x.HostMTU(f)
	s.Begin, s.Stop = f.Start.Seconds(), f.Stop.Seconds()
	s.Size = f.App.Wanted()
}

// lnxOf is the file of an end's node.
func lnxOf(s *Start) string {
	return fmt.Sprintf("interface %s %s/24 %s\nneighbor %s at %s via %s\nroute 0.0.0.0/0 via %s\n"+
		"link %s mtu %d\n",
		simulation.HostFace, s.Host, s.Local, s.Gateway, s.Remote, simulation.HostFace, s.Gateway,
		simulation.HostFace, s.MTU)
}

func (p *Plan) cell() (*plan.Cell, error) {
	f, err := plan.Parse("the experiment", []byte(p.Document))
	if err != nil {
		return nil, err
	}
	f.Load = func(name string) ([]byte, error) {
		if text, ok := p.Files[name]; ok {
			return text, nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	cells, err := f.Cells()
	if err != nil {
		return nil, err
	}
	if p.Cell < 0 || p.Cell >= len(cells) {
		return nil, errors.New("the experiment has no cell " + fmt.Sprint(p.Cell))
	}
	return &cells[p.Cell], nil
}
