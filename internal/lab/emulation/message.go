package emulation

import (
	"bufio"
	"cmp"
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

// Role is the role of a process in a run.
type Role string

// These are the roles.
const (
	Sender   Role = "sender" // the process sends the flow's data
	Receiver Role = "receiver"
	Middle   Role = "middle"
)

// Start is the first message to a process. Times are seconds from the start of the run.
type Start struct {
	Type     string `json:"type"` // always "start"
	Role     Role   `json:"role"`
	Protocol string `json:"protocol,omitempty"`
	Flow     int    `json:"flow"` // number of the flow, from 0
	Name     string `json:"name,omitempty"`
	// Host is the process's own address, Peer is the other end's, and Gateway is the router between
	// them. Port is the port on which the end that does not dial listens. MTU is the link's.
	Host    netip.Addr `json:"host,omitzero"`
	Peer    netip.Addr `json:"peer,omitzero"`
	Gateway netip.Addr `json:"gateway,omitzero"`
	Port    uint16     `json:"port,omitempty"`
	MTU     int        `json:"mtu,omitempty"`
	// Local is the UDP address that the process binds. Remote is the destination of its packets.
	Local  netip.AddrPort `json:"local,omitzero"`
	Remote netip.AddrPort `json:"remote,omitzero"`
	LNX    string         `json:"lnx,omitempty"` // text of an .lnx file for the end's node
	// Begin is when the flow begins. Stop is when it ends even if it is not finished; 0: at the end
	// of the run, after Duration. Averages exclude the first Warmup seconds.
	Begin    float64 `json:"begin"`
	Stop     float64 `json:"stop,omitempty"`
	Duration float64 `json:"duration"`
	Warmup   float64 `json:"warmup,omitempty"`
	Size     uint64  `json:"size,omitempty"` // bytes to send; 0: as many as time permits
	Seed     uint64  `json:"seed"`
	Record   bool    `json:"record,omitempty"` // the process must send rows
	// Plan has all other settings.
	Plan  Plan   `json:"plan"`
	Ports []Port `json:"ports,omitempty"` // sockets of the middle; empty for the others
}

// Plan is a resolved experiment and the files that it names.
type Plan struct {
	Document string            `json:"document"`
	Files    map[string][]byte `json:"files,omitempty"` // contents by name, in base64
	Cell     int               `json:"cell"`
}

// Port is a UDP connection between the middle and an end.
type Port struct {
	Flow   int            `json:"flow"`
	Right  bool           `json:"right,omitempty"` // the end is on the right side
	Local  netip.AddrPort `json:"local"`
	Remote netip.AddrPort `json:"remote"`
}

type order struct {
	Type string `json:"type"`         // type of the message: "go" or "stop"
	At   int64  `json:"at,omitempty"` // start of the run, with "go": nanoseconds since 1970
}

// Message is a message from a process.
type Message struct {
	Type  string `json:"type"`            // ready, over, rows, log, done or error
	Text  string `json:"text,omitempty"`  // text of a log or error message
	Table string `json:"table,omitempty"` // samples, segments, progress or events
	Link  int    `json:"link,omitempty"`  // direction of the link, with events: 0 down, 1 up
	CSV   string `json:"csv,omitempty"`   // content of the rows
	Done         // content of a done message
}

// Done is the result of a process.
type Done struct {
	// Finished means that the flow was complete, as far as this process knows. Otherwise Note has
	// the reason.
	Finished bool          `json:"finished,omitempty"`
	Note     string        `json:"note,omitempty"`
	Values   result.Values `json:"values,omitempty"`
	// Until is when the flow ended for this process, in seconds; 0: it did not end.
	Until   float64         `json:"until,omitempty"`
	Objects []result.Object `json:"objects,omitempty"`
	MSS     int             `json:"mss,omitempty"`
	Own     []string        `json:"own,omitempty"` // columns of samples that a script recorded
	Late    Lateness        `json:"late,omitzero"`
	// Dropped is the number of packets that were lost because the process's sockets, or the
	// kernel's queues behind them, were full.
	Dropped uint64 `json:"dropped,omitempty"`
	// Thinned means that the record omits rows.
	Thinned bool `json:"thinned,omitempty"`
	// Tallies, Links and Marks are from the middle.
	Tallies []simulation.Tally  `json:"tallies,omitempty"`
	Links   []result.LinkRecord `json:"links,omitempty"`
	Marks   []result.Mark       `json:"marks,omitempty"`
	Notes   []string            `json:"notes,omitempty"`
	Rate    float64             `json:"rate,omitempty"`
}

// maxLine limits the length of a line, and rowsAtATime limits the rows in one message.
const (
	maxLine     = 16 << 20
	rowsAtATime = 4096
)

// ErrProtocol means that a process sent an invalid message.
var ErrProtocol = errors.New("sent an invalid message")

// messageWriter writes messages, one per line.
type messageWriter struct {
	mu sync.Mutex
	to *json.Encoder
}

// runProcess runs a process that writes messages. If it fails, the last message is its error.
func runProcess(w io.Writer, process func(*messageWriter) error) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	s := &messageWriter{to: e}
	err := process(s)
	if err != nil && !errors.Is(err, errAbandoned) {
		s.send(&Message{Type: "error", Text: err.Error()})
	}
	return err
}

// send writes a message. It ignores write errors: if the parent has stopped reading, it has also
// closed our input, and that stops this process.
func (s *messageWriter) send(m *Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.to.Encode(m)
}

// sendRows writes the rows of a table. Samples include a script's own columns.
func sendRows[T result.Row[T]](
	s *messageWriter, table string, link int, rows []T, own ...string,
) {
	for len(rows) > 0 {
		n := min(rowsAtATime, len(rows))
		s.send(&Message{
			Type: "rows", Table: table, Link: link,
			CSV: string(result.FormatRows(rows[:n], own...)),
		})
		rows = rows[n:]
	}
}

// orders returns the messages to a process after its Start. It closes the channel when in ends.
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

func readStart(r io.Reader) (*Start, *plan.Cell, *bufio.Scanner, error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	if !in.Scan() {
		return nil, nil, nil, fmt.Errorf("reading the start message from standard input: %w",
			cmp.Or(in.Err(), io.ErrUnexpectedEOF))
	}
	s := new(Start)
	if err := json.Unmarshal(in.Bytes(), s); err != nil {
		return nil, nil, nil, fmt.Errorf("start message on standard input: %w", err)
	}
	if s.Type != "start" {
		return nil, nil, nil, fmt.Errorf("first message on standard input: type %q: must be start",
			s.Type)
	}
	cell, err := s.Plan.cell()
	return s, cell, in, err
}

func (s *Start) side(x *plan.Experiment) simulation.Side {
	if (s.Role == Sender) == x.Flows[s.Flow].Upward {
		return simulation.Right
	}
	return simulation.Left
}

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

func lnxOf(s *Start) string {
	return fmt.Sprintf("interface %s %s/24 %s\nneighbor %s at %s via %s\nroute 0.0.0.0/0 via %s\n"+
		"link %s mtu %d\n",
		simulation.HostIface, s.Host, s.Local, s.Gateway, s.Remote, simulation.HostIface, s.Gateway,
		simulation.HostIface, s.MTU)
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
		return nil, fmt.Errorf("the experiment has no cell %d", p.Cell)
	}
	return &cells[p.Cell], nil
}
