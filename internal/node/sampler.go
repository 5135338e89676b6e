package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

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
	file   *os.File // nil: not open yet
	rows   []byte   // the loop's
	missed int      // the loop's
	// flushAt is when rows must be written that do not fill a buffer; never: there are none. The
	// loop's.
	flushAt clock.Time
	full    chan []byte // to be written
	empty   chan []byte // written, to be filled again
	done    chan error  // of the first write that failed, at the end
}

// newSampler returns a sampler that queues rows until start gives it a file.
func newSampler(path string) *sampler {
	return &sampler{
		path: path, rows: []byte(sampleHeader),
		full: make(chan []byte, sampleQueue), done: make(chan error, 1),
		empty: make(chan []byte, sampleQueue+2), // and what the loop fills, and what is written
	}
}

// open opens the file and starts to write. It is called at most once.
func (s *sampler) open(overwrite bool) error {
	f, err := files.Machine().Create(s.path, 0o666)
	if errors.Is(err, fs.ErrExist) {
		if !overwrite {
			return fmt.Errorf("%s: %w: --force replaces it", s.path, fs.ErrExist)
		}
		if f, err = files.Machine().Edit(s.path, 0o666); err == nil {
			err = f.Truncate(0)
		}
	}
	if err != nil {
		return err
	}
	s.start(f)
	return nil
}

// start writes rows into a file from now on.
func (s *sampler) start(f *os.File) {
	s.file = f
	go s.write()
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

// flushPeriod is how long something written down may stay in memory, where a
// program that reads the file does not see it and a kill loses it.
const flushPeriod = time.Second

// add writes down a sample. The loop's.
func (s *sampler) add(sid int, p *tcp.Info) {
	if s.flushAt == clock.Never {
		s.flushAt = p.Time.Add(flushPeriod)
	}
	if len(s.rows) >= sampleBytes && !s.hand() {
		s.missed++
		return
	}
	s.rows = appendSample(s.rows, sid, p)
}

// flush has written what waits in memory. Errors stick, and are told in the end. The loop's.
func (s *sampler) flush() {
	s.flushAt = clock.Never
	if len(s.rows) > 0 {
		s.hand() // if there is no room, it is written soon all the same
	}
}

// close writes what is left. The loop has ended.
func (s *sampler) close() error {
	if s.file == nil {
		return nil
	}
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

// sampleHeader names the columns of a probe file, after ss -ti's fields.
const sampleHeader = "seconds,sid,state,cwnd,ssthresh,rtt_ms,rttvar_ms,rto_ms,minrtt_ms," +
	"in_flight,acked,sent,retrans,rtos,tlps,limited\n"

// appendSample appends one row of a probe file.
func appendSample(row []byte, sid int, p *tcp.Info) []byte {
	ms := func(d int64) { row = strconv.AppendFloat(row, float64(d)/1e6, 'f', 4, 64) }
	num := func(v uint64) { row = strconv.AppendUint(row, v, 10) }
	comma := func() { row = append(row, ',') }
	row = strconv.AppendFloat(row, float64(p.Time)/1e9, 'f', 6, 64)
	comma()
	row = strconv.AppendInt(row, int64(sid), 10)
	comma()
	row = append(row, p.State.String()...)
	comma()
	num(uint64(p.Cwnd))
	comma()
	num(uint64(p.Ssthresh))
	for _, d := range []int64{int64(p.RTT), int64(p.RTTVar), int64(p.RTO), int64(p.MinRTT)} {
		comma()
		ms(d)
	}
	for _, v := range []uint64{
		uint64(p.Pipe), p.Una, p.Nxt, p.Retransmits, p.Timeouts, p.TailProbes,
	} {
		comma()
		num(v)
	}
	comma()
	row = append(row, p.Limited.String()...)
	return append(row, '\n')
}
