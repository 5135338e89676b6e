package node

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/sight"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// records are what is written down of a running node. The loop's.
type records struct {
	sampler *sampler // nil: none
	flushAt clock.Time
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
	if r.sampler != nil && r.sampler.err == nil {
		r.sampler.err = r.sampler.w.Flush()
	}
}

// tap is what the stack shows packets to while somebody looks.
func (n *Node) tap(
	now clock.Time, i int, dir stack.Direction, reason ip.DropReason, pieces [][]byte,
) {
	if n.verbose.on() && reason == ip.DropNone {
		n.verboseSegment(dir, pieces)
	}
	if n.observed() {
		s := sight.Sight{Iface: i, Out: dir == stack.Outbound, Reason: reason}
		if !s.Out && n.stack.FromSelf() {
			s.Iface = sight.OwnFace
		}
		n.exhibit(now, s, pieces)
	}
	if n.cfg.Tap != nil {
		n.cfg.Tap(now, i, dir, reason, pieces)
	}
}

// retap has the stack show packets exactly while somebody looks. The loop's.
func (n *Node) retap() {
	if n.verbose.on() || n.observed() || n.cfg.Tap != nil {
		n.stack.SetTap(n.tap)
	} else {
		n.stack.SetTap(nil)
	}
	n.rewatch()
}

// openRecords opens what the configuration wants recorded from the start.
func (n *Node) openRecords() (err error) {
	n.retap()
	if n.cfg.Probe != "" {
		if n.sampler, err = openSampler(n.cfg.Probe); err != nil {
			return fmt.Errorf("probe: %w", err)
		}
	}
	for _, o := range n.cfg.Observers {
		if err := n.observe(o); err != nil {
			return err
		}
	}
	return nil
}

// closeRecords ends the records when the loop has stopped.
func (n *Node) closeRecords() error {
	if n.sampler == nil {
		return nil
	}
	return n.sampler.close()
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
