package node

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
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
		n.exhibit(now, sight{iface: i, out: dir == stack.Outbound, reason: reason}, pieces)
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

// startPcap begins the capture of every packet.
func (n *Node) startPcap(r control.PcapStart) error {
	var err error
	callErr := n.call(func(clock.Time) { err = n.notCapturing() }) // before the file is begun anew
	if err = firstError(callErr, err); err != nil {
		return controlError(err)
	}
	c, err := n.preparePcap(r)
	if err != nil {
		return err
	}
	callErr = n.call(func(clock.Time) { err = n.beginPcap(c) })
	if err = firstError(callErr, err); err != nil {
		return controlError(errors.Join(err, c.abandon()))
	}
	return nil
}

// notCapturing reports what captures every packet already. The loop's.
func (n *Node) notCapturing() error {
	if n.pcap == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", n.pcap.o.about.File, control.ErrCapturing)
}

func (n *Node) preparePcap(r control.PcapStart) (*capturing, error) {
	if r.File == "" {
		return nil, control.Misuse("a capture that nobody waits for needs a file")
	}
	c, err := n.prepareFile(&control.Record{File: r.File, Snaplen: r.Snaplen})
	if err == nil {
		c.o.about.Kind = "pcap"
	}
	return c, err
}

// beginPcap is the loop's.
func (n *Node) beginPcap(c *capturing) error {
	if err := n.notCapturing(); err != nil {
		return err
	}
	if err := n.observe(c.o); err != nil {
		return err
	}
	n.pcap = c
	c.begin()
	return nil
}

func (n *Node) stopPcap() (control.Capture, error) {
	var c *capturing
	callErr := n.call(func(clock.Time) { c, n.pcap = n.pcap, nil })
	switch {
	case callErr != nil:
		return control.Capture{}, controlError(callErr)
	case c == nil:
		return control.Capture{}, control.ErrNotCapturing
	}
	return c.finishPcap()
}

func (c *capturing) finishPcap() (control.Capture, error) {
	done := c.finish()
	answer := control.Capture{
		File: done.File, Packets: done.Packets, Missed: c.o.shown - done.Packets,
	}
	if done.Problem != "" {
		return answer, fmt.Errorf("%s; %d packets are in it, %d are not", done.Problem,
			answer.Packets, answer.Missed)
	}
	return answer, nil
}

// openRecords opens what the configuration wants recorded from the start.
func (n *Node) openRecords() (err error) {
	n.retap()
	if n.cfg.Probe != "" {
		if n.sampler, err = openSampler(n.cfg.Probe); err != nil {
			return fmt.Errorf("probe: %w", err)
		}
	}
	if n.cfg.Pcap != "" { // the last, for it has a goroutine
		c, err := n.preparePcap(control.PcapStart{File: n.cfg.Pcap, Snaplen: n.cfg.Snaplen})
		if err == nil {
			err = n.beginPcap(c)
		}
		if err != nil {
			return fmt.Errorf("pcap: %w", err)
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
