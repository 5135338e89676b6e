package observe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Taps connects observers to the packets of a node.
type Taps interface {
	// Observe passes the observer all packets from now on. ObserveSocket passes the packets of one
	// connection, or of the next connection of a listener.
	Observe(o *Observer) error
	ObserveSocket(o *Observer, sid int, recorded bool) (Beginning, error)
	// Unobserve stops passing packets to the observer.
	Unobserve(o *Observer)
}

// Node is the part of a node that captures and traces use in addition to its Clock and Taps.
type Node interface {
	// Ifaces returns the current and former interfaces by number. IfaceName returns the name of an
	// interface, or SelfIface. Iface returns the number of the interface with a name.
	Ifaces() []stack.Interface
	IfaceName(i int) string
	Iface(name string) (int, error)
}

// Clock is a node's clock: it returns the time of day, now or for an instant.
type Clock interface {
	Now() time.Time
	Wall(t clock.Time) time.Time
	// Driven reports whether the clock waits for the node, as in simulations.
	Driven() bool
}

// Host handles a node's requests for captures and traces.
type Host struct {
	control.Handlers
	node     Node
	clock    Clock
	taps     Taps
	announce func(control.Event)

	mu     sync.Mutex
	lastID int
	files  map[int]*capturing // captures that StartCapture has started, by number
	pcap   *capturing         // capture that PcapStart has started; nil: none is running
}

// New returns the captures and traces of a node. It calls announce with events for operators.
func New(n Node, c Clock, taps Taps, announce func(control.Event)) *Host {
	h := &Host{
		Handlers: control.Handlers{}, node: n, clock: c, taps: taps,
		announce: announce, files: map[int]*capturing{},
	}
	control.Handle(h.Handlers, h.capture)
	control.Handle(h.Handlers, h.start)
	control.Handle(h.Handlers, h.stop)
	control.Handle(h.Handlers, h.trace)
	control.HandleOrder(h.Handlers, h.startPcap)
	control.Handle(h.Handlers, h.stopPcap)
	return h
}

// start starts a background capture into a file.
func (h *Host) start(ctx context.Context, r control.StartCapture) (control.Capturing, error) {
	if r.File == "" {
		return control.Capturing{}, errNoFile
	}
	c, err := h.prepareFile(files.Of(ctx), &control.Record{
		Iface: r.Iface, Filter: r.Filter, Snaplen: r.Snaplen, Count: r.Count, File: r.File,
		FileSize: r.FileSize, Files: r.Files, Overwrite: r.Overwrite,
	})
	if err != nil {
		return control.Capturing{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c.o.About.ID = h.lastID%math.MaxInt32 + 1
	if err := h.taps.Observe(c.o); err != nil {
		return control.Capturing{}, errors.Join(err, c.abandon())
	}
	h.lastID = c.o.About.ID
	h.files[h.lastID] = c
	c.begin()
	return c.o.About, nil
}

var errNoFile = control.Misuse("a capture without a reader needs a file")

func (h *Host) prepareFile(folder *files.Folder, r *control.Record) (*capturing, error) {
	c, err := h.prepare(r)
	if err != nil {
		return nil, err
	}
	if _, _, err := c.sink(folder, r); err != nil {
		return nil, err
	}
	return c, nil
}

// prepare validates a request for a capture.
func (h *Host) prepare(r *control.Record) (*capturing, error) {
	if r.FileSize < 0 || r.Files < 0 || r.File == "" && (r.FileSize > 0 || r.Files > 0) ||
		r.FileSize == 0 && r.Files > 0 {
		return nil, control.Misuse(
			"file size %d, files %d: must not be negative; a size needs a file name, "+
				"and files needs a size", r.FileSize, r.Files)
	}
	o, err := newObserver(r)
	if err != nil {
		return nil, err
	}
	o.Patient = h.clock.Driven() && r.File != ""
	if r.Iface == SelfIface {
		o.Iface, o.About.Iface = OwnIface, SelfIface
	} else if r.Iface != "" && r.Iface != "all" {
		if o.Iface, err = h.node.Iface(r.Iface); err != nil {
			return nil, err
		}
		o.About.Iface = h.node.IfaceName(o.Iface)
	}
	c := h.newCapturing(o)
	o.Ifaces = len(c.faces) - 1
	return c, nil
}

// newObserver returns an observer of all interfaces for a capture.
func newObserver(r *control.Record) (*Observer, error) {
	if r.Snaplen < 0 || r.Snaplen > capture.DefaultSnaplen {
		return nil, fmt.Errorf("snaplen %d: %w: must be 0 to %d", r.Snaplen, control.ErrUsage,
			capture.DefaultSnaplen)
	}
	o := &Observer{
		Iface: AllIfaces, Snaplen: r.Snaplen, Limit: r.Count, WithState: true,
		About: control.Capturing{Kind: "capture", Iface: "all", Filter: r.Filter, File: r.File},
	}
	if r.Lines && (r.Snaplen == 0 || r.Snaplen > lineBytes) {
		o.Snaplen = lineBytes
	}
	var err error
	if o.Filter, err = capture.ParseFilter(r.Filter); err != nil {
		return nil, control.Also(err, control.ErrUsage)
	}
	return o, nil
}

// lineBytes is the number of bytes of a packet that the one-line description needs.
const lineBytes = 256

// newCapturing returns a capture for an observer, with the node's current interfaces.
func (h *Host) newCapturing(o *Observer) *capturing {
	c := &capturing{host: h, o: o, over: make(chan struct{})}
	for _, f := range h.node.Ifaces() {
		c.faces = append(c.faces, described(f))
	}
	c.faces = append(c.faces, capture.Interface{Name: SelfIface, Addr: "the node itself"})
	return c
}

func (h *Host) forget(c *capturing) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.files, c.o.About.ID)
}

func (h *Host) stop(_ context.Context, r control.StopCapture) (control.Captured, error) {
	c, err := h.takeCapture(r.ID)
	if err != nil {
		return control.Captured{}, err
	}
	return c.finish(), nil
}

// takeCapture removes a capture from the list and returns it. id is its number; 0 means the only
// capture.
func (h *Host) takeCapture(id int) (*capturing, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if id == 0 && len(h.files) == 1 {
		for id = range h.files {
		}
	}
	c := h.files[id]
	switch {
	case c != nil:
		delete(h.files, id)
		return c, nil
	case len(h.files) == 0:
		return nil, control.ErrNotCapturing
	case id == 0:
		return nil, control.Misuse("ambiguous: %d captures are running", len(h.files))
	}
	return nil, fmt.Errorf("%d: %w", id, control.ErrNotCapturing)
}

// Finish waits until all captures are written. It returns the error of the capture of every packet.
// The node must have stopped.
func (h *Host) Finish() error {
	h.mu.Lock()
	pcap, list := h.pcap, h.files
	h.pcap, h.files = nil, map[int]*capturing{}
	h.mu.Unlock()
	for _, c := range list {
		c.finish() // write has announced an error, if any
	}
	if pcap == nil {
		return nil
	}
	_, err := pcap.finishPcap()
	return err
}

func (h *Host) say(format string, args ...any) {
	h.announce(control.Message{Text: fmt.Sprintf(format, args...)})
}
