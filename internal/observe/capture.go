package observe

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// capturing is a running capture: its observer and its output.
type capturing struct {
	host     *Host
	o        *Observer
	done     control.Captured
	file     *captureFile // output file; nil: no file
	stop     context.CancelFunc
	over     chan struct{}       // closed when everything is written
	faces    []capture.Interface // interfaces in the file, by number
	comments CommentCache
}

// capture runs a capture whose caller waits for its end.
func (h *Host) capture(ctx context.Context, r control.Record) (control.Captured, error) {
	c, err := h.prepare(&r)
	if err != nil {
		return control.Captured{}, err
	}
	write := c.lines(r.Packet)
	finish := func() error { return nil }
	if !r.Lines {
		if write, finish, err = c.sink(files.Of(ctx), &r); err != nil {
			return control.Captured{}, err
		}
	}
	if err := h.taps.Observe(c.o); err != nil {
		return control.Captured{}, errors.Join(err, c.abandon())
	}
	if r.Begun != nil {
		r.Begun()
	}
	if err = write(&Batch{}); err == nil { // writes the file header even if no packet follows
		err = c.o.Watch(ctx, h.taps, write)
	}
	err = errors.Join(err, finish())
	if err != nil {
		err = fmt.Errorf("%w; the file contains %d packets", err, c.done.Packets)
	}
	return c.done, err
}

func (c *capturing) abandon() error {
	if c.file == nil {
		return nil
	}
	return c.file.abandon()
}

// sink returns the functions that write packets and finish the output.
func (c *capturing) sink(
	folder *files.Folder, r *control.Record,
) (write func(*Batch) error, finish func() error, err error) {
	if r.File != "" {
		c.file = &captureFile{
			folder: folder, path: r.File, limit: r.FileSize, keep: r.Files, replace: r.Overwrite,
			c: c,
		}
		if err := c.file.open(); err != nil {
			return nil, nil, err
		}
		return c.file.write, c.file.finish, nil
	}
	w, err := capture.New(pieceWriter(r.Piece), c.faces, c.o.Snaplen)
	if err != nil {
		return nil, nil, err
	}
	return func(p *Batch) error {
			for i := range p.List {
				if err := c.packet(w, p, &p.List[i]); err != nil {
					return err
				}
			}
			return w.Flush()
		}, func() error {
			return errors.Join(c.statistics(w), w.Flush())
		}, nil
}

// pieceWriter is a writer that passes its input to a function; nil discards it.
type pieceWriter func([]byte)

func (f pieceWriter) Write(b []byte) (int, error) {
	if f != nil && len(b) > 0 {
		f(b)
	}
	return len(b), nil
}

func (c *capturing) packet(w *capture.Writer, p *Batch, s *Packet) error {
	comment := c.comments.State(s)
	if why := s.Dropped(); why != "" {
		if comment != "" {
			comment = "; " + comment
		}
		comment = "dropped: " + why + comment
	}
	d := capture.Inbound
	if s.Out {
		d = capture.Outbound
	}
	data := p.Bytes(s)
	iface, err := c.faceOf(w, s.Iface)
	if err != nil {
		return err
	}
	err = w.Record(&capture.Record{
		At: c.host.clock.Wall(s.At).UnixNano(), Iface: iface, Direction: d, Comment: comment,
		Length: s.Length, Missed: s.Missed,
	}, data)
	if err == nil {
		c.done.Packets++
		c.done.Bytes += uint64(s.Length)
	}
	return err
}

// faceOf returns an interface's number in the file, and adds it to the file if it is new.
func (c *capturing) faceOf(w *capture.Writer, iface int) (int, error) {
	number := c.o.Number(iface)
	for len(c.faces) <= number {
		next := described(c.host.node.Ifaces()[len(c.faces)-1])
		if err := w.Add(next); err != nil {
			return 0, err
		}
		c.faces = append(c.faces, next)
	}
	return number, nil
}

func described(f stack.Interface) capture.Interface {
	var list []string
	for _, a := range append([]netip.Prefix{f.Addr}, f.IPv6...) {
		if a.IsValid() {
			list = append(list, a.String())
		}
	}
	return capture.Interface{Name: f.Name, Addr: strings.Join(list, " ")}
}

// statistics writes how many packets each interface had since the capture began, and how many of
// them the capture missed.
func (c *capturing) statistics(w *capture.Writer) (err error) {
	faces, missed := c.o.Counts()
	c.done.Missed = missed
	at := c.host.clock.Now().UnixNano()
	for i, f := range faces[:min(len(faces), len(c.faces))] {
		err = errors.Join(err, w.Statistics(at, i, f.Packets, f.Missed))
	}
	return err
}

func (c *capturing) lines(tell func(control.Packet)) func(*Batch) error {
	var text []byte
	return func(p *Batch) error {
		for i := range p.List {
			s := &p.List[i]
			text = capture.Describe(text[:0], p.Bytes(s))
			c.done.Packets++
			c.done.Bytes += uint64(s.Length)
			if tell != nil {
				tell(control.Packet{
					At: c.host.clock.Wall(s.At), Iface: c.host.node.IfaceName(s.Iface), Sent: s.Out,
					Length: s.Length, Text: string(text), Drop: s.Dropped(), State: s.State(),
				})
			}
		}
		_, c.done.Missed = c.o.Counts()
		return nil
	}
}

func (c *capturing) begin() {
	var ctx context.Context
	ctx, c.stop = context.WithCancel(context.Background())
	go c.write(ctx)
}

func (c *capturing) write(ctx context.Context) {
	defer close(c.over)
	defer c.stop()
	err := errors.Join(c.o.Watch(ctx, c.host.taps, c.file.write), c.file.finish())
	asked := ctx.Err() != nil
	what := "capture"
	if c.o.About.ID > 0 {
		what = fmt.Sprintf("capture %d", c.o.About.ID)
	}
	if err != nil {
		c.done.Problem = err.Error()
		c.host.say("%s: %v; it contains %d packets", what, err, c.done.Packets)
	} else if !asked {
		c.host.say("%s: %d packets in %s", what, c.done.Packets, c.done.File)
	}
	if !asked {
		c.host.forget(c)
	}
}

// finish stops a background capture and returns its result.
func (c *capturing) finish() control.Captured {
	c.stop()
	<-c.over
	return c.done
}
