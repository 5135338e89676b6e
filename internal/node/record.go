package node

import (
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

// flush has written what waits in memory. Errors stick, and are told in the end.
func (r *records) flush() {
	r.flushAt = clock.Never
	if r.sampler != nil && len(r.sampler.rows) > 0 {
		r.sampler.hand() // if there is no room, it is written soon all the same
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
	for _, o := range n.cfg.Observers {
		if err := n.observe(o); err != nil {
			return err
		}
	}
	if n.cfg.Probe != "" { // last: it has a goroutine, which ends with a node that is open
		if n.sampler, err = openSampler(n.cfg.Probe); err != nil {
			return fmt.Errorf("probe: %w", err)
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

const (
	// sampleBytes is how much the loop gives the writer of samples at once, and
	// sampleQueue how often it may while that is busy: 4 MiB, some 30,000 rows.
	sampleBytes = 64 << 10
	maxRow      = 512
	sampleQueue = 64
)

// sampler writes a CSV row an ACK. The loop fills its rows, and a goroutine beside it writes
// them: no disk holds up the loop, and rows that find no room are counted.
type sampler struct {
	path   string
	file   *os.File
	rows   []byte      // the loop's
	missed int         // the loop's
	full   chan []byte // to be written
	empty  chan []byte // written, to be filled again
	done   chan error  // of the first write that failed, at the end
}

func openSampler(path string) (*sampler, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	s := &sampler{
		path: path, file: f, rows: []byte(sampleHeader),
		full: make(chan []byte, sampleQueue), done: make(chan error, 1),
		empty: make(chan []byte, sampleQueue+2), // and what the loop fills, and what is written
	}
	go s.write()
	return s, nil
}

// write is the goroutine beside the loop.
func (s *sampler) write() {
	var err error
	for rows := range s.full {
		if err == nil {
			_, err = s.file.Write(rows)
		}
		s.empty <- rows // it has room for all that there are
	}
	s.done <- err
}

// hand gives the rows to the writer, and reports whether he has room. The loop's.
func (s *sampler) hand() bool {
	select {
	case s.full <- s.rows:
	default:
		return false
	}
	select {
	case rows := <-s.empty:
		s.rows = rows[:0]
	default:
		s.rows = make([]byte, 0, sampleBytes+maxRow)
	}
	return true
}

// add writes down a sample. The loop's.
func (s *sampler) add(sid int, p *tcp.Sample) {
	if len(s.rows) >= sampleBytes && !s.hand() {
		s.missed++
		return
	}
	s.rows = appendSample(s.rows, sid, p)
}

// close writes what is left. The loop has ended.
func (s *sampler) close() error {
	s.full <- s.rows
	close(s.full)
	err := errors.Join(<-s.done, s.file.Close())
	if err == nil && s.missed > 0 {
		err = fmt.Errorf("%d rows are missing: nobody wrote them as fast as they came", s.missed)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	return nil
}

// record writes down a connection's sample. The loop's.
func (n *Node) record(sid int, p *tcp.Sample) {
	n.wrote(p.Time)
	n.sampler.add(sid, p)
}
