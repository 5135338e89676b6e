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
	// The loop passes sampleBytes at a time to the writer, and queues at most sampleQueue such
	// buffers: 4 MiB, about 30,000 rows.
	sampleBytes = 64 << 10
	maxRow      = 512
	sampleQueue = 64
)

// sampler writes a CSV row for each ACK. The loop formats the rows and a goroutine writes them, so
// a slow disk never blocks the loop. Rows that do not fit in the queue are counted.
type sampler struct {
	path   string
	file   *os.File // output file; nil until it is open
	rows   []byte   // loop only
	missed int      // loop only
	// flushAt is when rows must be written even if they do not fill a buffer; never: there are no
	// rows. Loop only.
	flushAt clock.Time
	full    chan []byte // buffers to be written
	empty   chan []byte // buffers to be filled
	done    chan error  // receives the first error of write at the end
}

// newSampler returns a sampler that queues rows until start.
func newSampler(path string) *sampler {
	return &sampler{
		path: path, rows: []byte(sampleHeader),
		full: make(chan []byte, sampleQueue), done: make(chan error, 1),
		empty: make(chan []byte, sampleQueue+2), // one more buffer each for the loop and the writer
	}
}

// open creates the file and starts writing. It is called once.
func (s *sampler) open(overwrite bool) error {
	f, err := files.Machine().Create(s.path, 0o666)
	if errors.Is(err, fs.ErrExist) {
		if !overwrite {
			return fmt.Errorf("%s: %w", s.path, fs.ErrExist)
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

func (s *sampler) start(f *os.File) {
	s.file = f
	go s.write()
}

// write writes buffers in its own goroutine.
func (s *sampler) write() {
	var err error
	for rows := range s.full {
		if err == nil {
			_, err = s.file.Write(rows)
		}
		s.empty <- rows // never blocks, because the channel has room for all buffers
	}
	s.done <- err
}

// passRows passes the rows to the writer. It returns false if the queue is full. Loop only.
func (s *sampler) passRows() bool {
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

// flushPeriod limits how long rows stay in memory, where readers of the file cannot see them and a
// crash would lose them.
const flushPeriod = time.Second

// add adds a row. Loop only.
func (s *sampler) add(sid int, p *tcp.Info) {
	if s.flushAt == clock.Never {
		s.flushAt = p.Time.Add(flushPeriod)
	}
	if len(s.rows) >= sampleBytes && !s.passRows() {
		s.missed++
		return
	}
	s.rows = appendSample(s.rows, sid, p)
}

// flush passes the rows in memory to the writer. close returns the first error. Loop only.
func (s *sampler) flush() {
	s.flushAt = clock.Never
	if len(s.rows) > 0 {
		s.passRows() // if the queue is full, add passes them on later
	}
}

// close writes the remaining rows after the loop has ended.
func (s *sampler) close() error {
	if s.file == nil {
		return nil
	}
	s.full <- s.rows
	close(s.full)
	err := errors.Join(<-s.done, s.file.Close())
	if err == nil && s.missed > 0 {
		err = fmt.Errorf("%d rows are missing: the disk was too slow", s.missed)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	return nil
}

// sampleHeader has the names of the columns. They follow the fields of `ss -ti`.
const sampleHeader = "seconds,sid,state,cwnd,ssthresh,rtt_ms,rttvar_ms,rto_ms,minrtt_ms," +
	"in_flight,acked,sent,retrans,rtos,tlps,limited\n"

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
	num(uint64(p.SndCwnd))
	comma()
	num(uint64(p.SndSsthresh))
	for _, d := range []int64{int64(p.RTT), int64(p.RTTVar), int64(p.RTO), int64(p.MinRTT)} {
		comma()
		ms(d)
	}
	for _, v := range []uint64{
		uint64(p.Pipe), p.Una, p.Nxt, p.TotalRetrans, p.TotalRTO, p.TailProbes,
	} {
		comma()
		num(v)
	}
	comma()
	row = append(row, p.Limited...)
	return append(row, '\n')
}
