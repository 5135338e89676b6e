package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
)

// captureRequest serves the requests about captures and traces.
func (n *Node) captureRequest(ctx context.Context, req any) (any, error) {
	switch r := req.(type) {
	case control.Record:
		return n.capture(ctx, &r)
	case control.StartCapture:
		return n.beginCapture(&r)
	case control.StopCapture:
		return n.endCapture(r)
	case control.Trace:
		return n.trace(ctx, &r)
	case control.Samples:
		return n.samples(ctx, &r)
	}
	panic(fmt.Sprintf("BUG: node: %T is not about captures", req))
}

// capturing is one capture: who is shown packets, and what becomes of them.
type capturing struct {
	node  *Node
	o     *observer
	done  control.Captured
	file  *captureFile // nil: none
	stop  context.CancelFunc
	over  chan struct{}       // closed when all is written, or given up
	faces []capture.Interface // of its files, by their number
}

// prepare checks what a capture asks for.
func (n *Node) prepare(r *control.Record) (*capturing, error) {
	if r.Snaplen < 0 || r.Snaplen > capture.DefaultSnaplen {
		return nil, fmt.Errorf("snaplen %d: %w: want 0 to %d", r.Snaplen, control.ErrUsage,
			capture.DefaultSnaplen)
	}
	if r.FileSize < 0 || r.Files < 0 || r.File == "" && (r.FileSize > 0 || r.Files > 0) ||
		r.FileSize == 0 && r.Files > 0 {
		return nil, control.Misuse(
			"files of %d bytes, %d of them: want a file, its size, and how many",
			r.FileSize, r.Files)
	}
	o := &observer{
		iface: allFaces, snaplen: r.Snaplen, limit: r.Count, glances: true,
		patient: n.cfg.Clock != nil && r.File != "",
		about:   control.Capturing{Kind: "capture", Iface: "all", Filter: r.Filter, File: r.File},
	}
	if r.Lines && (r.Snaplen == 0 || r.Snaplen > lineBytes) {
		o.snaplen = lineBytes
	}
	var err error
	if r.Iface != "" && r.Iface != "all" {
		if r.Iface == selfFace {
			o.iface, o.about.Iface = ownFace, selfFace
		} else if o.iface, err = n.face(r.Iface); err != nil {
			return nil, err
		}
		if o.iface >= 0 {
			o.about.Iface = n.faceName(o.iface)
		}
	}
	if o.filter, err = capture.ParseFilter(r.Filter); err != nil {
		return nil, control.Also(err, control.ErrUsage)
	}
	c := &capturing{node: n, o: o, over: make(chan struct{}), faces: n.captureFaces()}
	o.known, o.faces = len(c.faces)-1, make([]faceCount, len(c.faces))
	return c, nil
}

// lineBytes is how much of a packet is looked at for its line.
const lineBytes = 256

// faces are the interfaces as a capture names them.
func (n *Node) captureFaces() []capture.Interface {
	var faces []capture.Interface
	for _, f := range n.asIs().Interfaces {
		faces = append(faces, capture.Interface{Name: f.Name, Addr: f.Addr.String()})
	}
	return append(faces, capture.Interface{Name: selfFace, Addr: "the node itself"})
}

// capture is a capture that somebody waits for.
func (n *Node) capture(ctx context.Context, r *control.Record) (control.Captured, error) {
	c, err := n.prepare(r)
	if err != nil {
		return control.Captured{}, err
	}
	defer close(c.over)
	write := c.lines(r.Packet)
	finish := func() error { return nil }
	if !r.Lines {
		if write, finish, err = c.sink(r); err != nil {
			return control.Captured{}, err
		}
	}
	callErr := n.call(func(clock.Time) { err = n.observe(c.o) })
	if err = firstError(callErr, err); err != nil {
		return control.Captured{}, controlError(errors.Join(err, c.abandon()))
	}
	if r.Begun != nil {
		r.Begun()
	}
	if c.file != nil {
		go c.guard(ctx)
	}
	if err = write(&pile{}); err == nil { // the header, though no packet may ever come
		err = c.o.watch(ctx, n, write)
	}
	err = errors.Join(err, finish())
	if err != nil {
		err = fmt.Errorf("%w; %d packets are in it", err, c.done.Packets)
	}
	return c.done, err
}

// abandon deletes the file of a capture that did not begin.
func (c *capturing) abandon() error {
	if c.file == nil {
		return nil
	}
	return c.file.abandon()
}

// sink is what writes packets, and what ends that.
func (c *capturing) sink(
	r *control.Record,
) (write func(*pile) error, finish func() error, err error) {
	if r.File != "" {
		c.file = &captureFile{path: r.File, limit: r.FileSize, keep: r.Files, c: c}
		if err := c.file.open(); err != nil {
			return nil, nil, err
		}
		return c.file.write, c.file.finish, nil
	}
	var out bytes.Buffer
	w, err := capture.New(&out, c.faces, c.o.snaplen)
	if err != nil {
		return nil, nil, err
	}
	pass := func() error {
		err := w.Flush()
		if r.Piece != nil && out.Len() > 0 {
			r.Piece(out.Bytes())
		}
		out.Reset()
		return err
	}
	const most = 256 << 10 // bytes of a piece, and a packet
	return func(p *pile) error {
			for i := range p.list {
				if err := c.packet(w, p, &p.list[i]); err != nil {
					return err
				}
				if i%64 == 63 {
					if err := w.Flush(); err != nil {
						return err
					}
					if out.Len() > most {
						if err := pass(); err != nil {
							return err
						}
					}
				}
			}
			return pass()
		}, func() error {
			return errors.Join(c.statistics(w), pass())
		}, nil
}

// packet writes one packet.
func (c *capturing) packet(w *capture.Writer, p *pile, s *sight) error {
	comment := s.stateOf()
	if why := s.dropped(); why != "" {
		comment = "dropped: " + why
		if state := s.stateOf(); state != "" {
			comment += "; " + state
		}
	}
	d := capture.Inbound
	if s.out {
		d = capture.Outbound
	}
	data := p.data[s.begin:s.end]
	iface, err := c.faceOf(w, s.iface)
	if err != nil {
		return err
	}
	err = w.Cut(c.node.wall(s.at).UnixNano(), iface, d, comment, s.length, data)
	if err == nil {
		c.done.Packets++
		c.done.Bytes += uint64(s.length)
	}
	return err
}

// faceOf is what a file calls an interface, of which it is told if it is new.
func (c *capturing) faceOf(w *capture.Writer, iface int) (int, error) {
	number := c.o.number(iface)
	for len(c.faces) <= number {
		f := c.node.asIs().Interfaces[len(c.faces)-1]
		next := capture.Interface{Name: f.Name, Addr: f.Addr.String()}
		if err := w.Add(next); err != nil {
			return 0, err
		}
		c.faces = append(c.faces, next)
	}
	return number, nil
}

// statistics writes, for each interface, how many packets there were since the capture began, and
// were missed.
func (c *capturing) statistics(w *capture.Writer) (err error) {
	faces, missed := c.o.counts()
	c.done.Missed = missed
	at := c.node.wall(c.node.now()).UnixNano()
	for i, f := range faces[:min(len(faces), len(c.faces))] {
		err = errors.Join(err, w.Statistics(at, i, f.packets, f.missed))
	}
	return err
}

// lines describes packets.
func (c *capturing) lines(tell func(control.Packet)) func(*pile) error {
	var text []byte
	return func(p *pile) error {
		for i := range p.list {
			s := &p.list[i]
			text = capture.Describe(text[:0], p.data[s.begin:s.end])
			c.done.Packets++
			c.done.Bytes += uint64(s.length)
			if tell != nil {
				tell(control.Packet{
					At: c.node.wall(s.at), Iface: c.node.faceName(s.iface), Sent: s.out,
					Length: s.length, Text: string(text), Drop: s.dropped(), State: s.stateOf(),
				})
			}
		}
		_, c.done.Missed = c.o.counts()
		return nil
	}
}

// beginCapture begins a capture into a file that nobody waits for.
func (n *Node) beginCapture(r *control.StartCapture) (control.Capturing, error) {
	if r.File == "" {
		return control.Capturing{}, control.Misuse("a capture that nobody waits for needs a file")
	}
	c, err := n.prepareFile(&control.Record{
		Iface: r.Iface, Filter: r.Filter, Snaplen: r.Snaplen, Count: r.Count, File: r.File,
		FileSize: r.FileSize, Files: r.Files,
	})
	if err != nil {
		return control.Capturing{}, err
	}
	var about control.Capturing
	callErr := n.call(func(clock.Time) {
		if err = n.observe(c.o); err != nil {
			return
		}
		if n.files == nil {
			n.files = map[int]*capturing{}
		}
		n.lastID = n.lastID%math.MaxInt32 + 1
		c.o.about.ID = n.lastID
		about = c.o.about
		n.files[about.ID] = c
		c.begin()
	})
	if err = firstError(callErr, err); err != nil {
		return about, controlError(errors.Join(err, c.abandon()))
	}
	return about, nil
}

// prepareFile is prepare for a capture that nobody waits for.
func (n *Node) prepareFile(r *control.Record) (*capturing, error) {
	c, err := n.prepare(r)
	if err != nil {
		return nil, err
	}
	if _, _, err := c.sink(r); err != nil {
		return nil, err
	}
	return c, nil
}

// begin has a goroutine write a capture that nobody waits for.
func (c *capturing) begin() {
	var ctx context.Context
	ctx, c.stop = context.WithCancel(context.Background())
	go c.write(ctx)
}

func (c *capturing) write(ctx context.Context) {
	defer close(c.over)
	defer c.stop()
	go c.guard(ctx)
	err := errors.Join(c.o.watch(ctx, c.node, c.file.write), c.file.finish())
	asked := ctx.Err() != nil
	what := "capture"
	if c.o.about.ID > 0 {
		what = fmt.Sprintf("capture %d", c.o.about.ID)
	}
	if err != nil {
		c.done.Problem = err.Error()
		c.node.say("%s: %v; %d packets are in it", what, err, c.done.Packets)
	} else if !asked {
		c.node.say("%s: %d packets in %s", what, c.done.Packets, c.done.File)
	}
	if !asked {
		_ = c.node.call(func(clock.Time) { c.node.forgetCapture(c) })
	}
}

// forgetCapture lets go of a capture that has ended by itself. The loop's.
func (n *Node) forgetCapture(c *capturing) {
	delete(n.files, c.o.about.ID)
}

// writePatience is how long a file may take nothing when all that is left is to write what waits.
const writePatience = 3 * time.Second

// guard gives a file up that takes nothing, as a pipe that nobody reads, once its capture is over.
// Before that it holds nobody up.
func (c *capturing) guard(ctx context.Context) {
	select {
	case <-c.over:
		return
	case <-ctx.Done():
	case <-c.o.ended:
	case <-c.node.stopped:
	}
	for taken := c.file.taken.Load(); ; {
		select {
		case <-c.over:
			return
		case <-time.After(writePatience):
		}
		now := c.file.taken.Load()
		if now == taken {
			c.file.giveUp()
			return
		}
		taken = now
	}
}

// finish ends a capture that nobody waits for, and is what became of it.
func (c *capturing) finish() control.Captured {
	c.stop()
	<-c.over
	return c.done
}

// finishCaptures waits until what captures have seen is written. The loop has stopped.
func (n *Node) finishCaptures() (err error) {
	for _, c := range n.files {
		c.finish() // who has started it is told by a message
	}
	if n.pcap != nil {
		_, err = n.pcap.finishPcap()
	}
	return err
}

func (n *Node) endCapture(r control.StopCapture) (done control.Captured, err error) {
	var c *capturing
	callErr := n.call(func(clock.Time) {
		id := r.ID
		if id == 0 && len(n.files) == 1 {
			for id = range n.files {
			}
		}
		switch c = n.files[id]; {
		case c != nil:
			delete(n.files, id)
		case len(n.files) == 0:
			err = control.ErrNotCapturing
		case id == 0:
			err = control.Misuse("which: %d captures run", len(n.files))
		default:
			err = fmt.Errorf("%d: %w", id, control.ErrNotCapturing)
		}
	})
	if err = firstError(callErr, err); err != nil {
		return done, controlError(err)
	}
	return c.finish(), nil
}
