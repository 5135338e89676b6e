package node

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// records are what is written down of a running node. The loop's.
type records struct {
	recorder *recorder // nil: none
	sampler  *sampler  // nil: none
	flushAt  clock.Time
	observing
}

// flushPeriod is how long something written down may stay in memory, where a
// program that reads the file does not see it and a kill loses it.
const flushPeriod = time.Second

// wrote has what was written flushed before long.
func (r *records) wrote(now clock.Time) {
	if r.flushAt == clock.Never {
		r.flushAt = now.Add(flushPeriod)
	}
}

// flush writes to the files what waits in memory. Their errors stick, and are
// told when they are closed.
func (r *records) flush() {
	r.flushAt = clock.Never
	if r.recorder != nil {
		_ = r.recorder.w.Flush()
	}
	if r.sampler != nil && r.sampler.err == nil {
		r.sampler.err = r.sampler.w.Flush()
	}
}

// recorder captures every packet into a pcapng file. The loop's.
type recorder struct {
	path    string
	file    *os.File
	w       *capture.Writer
	packets uint64
	missed  uint64 // after the disk refused one
}

func (n *Node) openRecorder(path string, snaplen int) (*recorder, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	var faces []capture.Interface
	for i := range n.cfg.LNX.Interfaces {
		face := &n.cfg.LNX.Interfaces[i]
		faces = append(faces, capture.Interface{Name: face.Name, Addr: face.Addr.String()})
	}
	w, err := capture.New(f, faces, snaplen)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &recorder{path: path, file: f, w: w}, nil
}

func (r *recorder) close() (control.Capture, error) {
	c := control.Capture{File: r.path, Packets: r.packets, Missed: r.missed}
	err := errors.Join(r.w.Flush(), r.file.Close())
	if err != nil {
		err = fmt.Errorf("%s: %w", r.path, err)
	}
	return c, err
}

// tap is what the stack shows packets to while somebody looks.
func (n *Node) tap(
	now clock.Time, i int, dir stack.Direction, reason ip.DropReason, pieces [][]byte,
) {
	if r := n.recorder; r != nil {
		comment := ""
		if reason != ip.DropNone {
			comment = "dropped: " + reason.String()
		}
		d := capture.Inbound
		if dir == stack.Outbound {
			d = capture.Outbound
		}
		n.wrote(now)
		if err := r.w.Packet(n.wall(now).UnixNano(), i, d, comment, pieces...); err != nil {
			if r.missed == 0 {
				n.say("capture: %s: %v", r.path, err)
			}
			r.missed++
		} else {
			r.packets++
		}
	}
	if n.verbose.on() && reason == ip.DropNone {
		n.verboseSegment(dir, pieces)
	}
	if len(n.observers) > 0 {
		n.exhibit(now, sight{iface: i, out: dir == stack.Outbound, reason: reason}, pieces)
	}
	if n.cfg.Tap != nil {
		n.cfg.Tap(now, i, dir, reason, pieces)
	}
}

// retap has the stack show packets exactly while somebody looks. The loop's.
func (n *Node) retap() {
	if n.recorder != nil || n.verbose.on() || len(n.observers) > 0 || n.cfg.Tap != nil {
		n.stack.SetTap(n.tap)
	} else {
		n.stack.SetTap(nil)
	}
	n.rewatch()
}

func (n *Node) startCapture(r control.PcapStart) (err error) {
	if r.Snaplen < 0 || r.Snaplen > capture.DefaultSnaplen {
		return fmt.Errorf("snaplen %d: %w: want 0 to %d",
			r.Snaplen, control.ErrUsage, capture.DefaultSnaplen)
	}
	callErr := n.call(func(clock.Time) {
		if n.recorder != nil {
			err = fmt.Errorf("%s: %w", n.recorder.path, control.ErrCapturing)
			return
		}
		if n.recorder, err = n.openRecorder(r.File, r.Snaplen); err == nil {
			n.retap()
		}
	})
	return controlError(firstError(callErr, err))
}

func (n *Node) stopCapture() (c control.Capture, err error) {
	callErr := n.call(func(clock.Time) {
		if n.recorder == nil {
			err = control.ErrNotCapturing
			return
		}
		c, err = n.recorder.close()
		n.recorder = nil
		n.retap()
	})
	return c, controlError(firstError(callErr, err))
}

// openRecords opens what the configuration wants recorded from the start.
func (n *Node) openRecords() (err error) {
	if n.cfg.Pcap != "" {
		if n.recorder, err = n.openRecorder(n.cfg.Pcap, n.cfg.Snaplen); err != nil {
			return fmt.Errorf("pcap: %w", err)
		}
	}
	n.retap()
	if n.cfg.Probe != "" {
		if n.sampler, err = openSampler(n.cfg.Probe); err != nil {
			return fmt.Errorf("probe: %w", err)
		}
	}
	return nil
}

// closeRecords ends the records when the loop has stopped.
func (n *Node) closeRecords() error {
	var errs []error
	if n.recorder != nil {
		_, err := n.recorder.close()
		errs = append(errs, err)
	}
	if n.sampler != nil {
		errs = append(errs, n.sampler.close())
	}
	return errors.Join(errs...)
}

// sampler writes a CSV row an ACK. The loop's.
type sampler struct {
	path string
	file *os.File
	w    *bufio.Writer
	row  []byte
	err  error
}

func openSampler(path string) (*sampler, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	s := &sampler{path: path, file: f, w: bufio.NewWriterSize(f, 256<<10)}
	_, s.err = s.w.WriteString(sampleHeader)
	return s, nil
}

func (s *sampler) close() error {
	if err := errors.Join(s.err, s.w.Flush(), s.file.Close()); err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	return nil
}

// record writes down a connection's sample. The loop's.
func (n *Node) record(sid int, p *tcp.Sample) {
	s := n.sampler
	n.wrote(p.Time)
	s.row = appendSample(s.row[:0], sid, p)
	if s.err == nil {
		_, s.err = s.w.Write(s.row)
	}
}
