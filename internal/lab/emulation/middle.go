package emulation

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/node"
)

// middle is the process between the ends. It belongs to one goroutine, the loop.
type middle struct {
	x       *plan.Experiment
	start   *Start
	waiter  node.Waiter
	sockets []*socket
	at      map[Port]*socket
	frames  []buffer.Frame

	base     time.Time // real time of the loop clock's zero
	began    clock.Time
	dumbbell *dumbbell
	path     *simulation.Path
	warm     bool // the warm-up is over
	late     simulation.Histogram
	lost     uint64 // packets lost because a socket buffer was full
	ended    atomic.Bool
}

type socket struct {
	device *link.UDP
	port   Port
	host   netip.Addr
	id     int
	ready  bool // the device may have packets to read
	trains []buffer.Train
	due    []clock.Time // when each train is due
	bytes  []byte       // the bytes of the trains
}

// framesPerRead is the number of frames in one read.
const framesPerRead = 16

// ServeMiddle is the main function of the process in the middle of a run. It reads and writes the
// messages that this package describes. It returns when the run is over, or when its input ends.
func ServeMiddle(in io.Reader, out io.Writer) error {
	return runProcess(out, func(to *messageWriter) error { return serveMiddle(in, to) })
}

// errAbandoned means that the input has ended, because the parent process has exited or given up.
var errAbandoned = errors.New("the parent process closed its input")

func serveMiddle(in io.Reader, to *messageWriter) error {
	start, cell, lines, err := readStart(in)
	if err != nil {
		return err
	}
	m := &middle{
		x: &cell.Experiment, start: start, base: time.Now(),
		frames: make([]buffer.Frame, framesPerRead),
	}
	defer m.close()
	if err := m.open(); err != nil {
		return err
	}
	to.send(&Message{Type: "ready"})
	incoming := orders(lines)
	o, ok := <-incoming
	if !ok || o.Type != "go" {
		return errAbandoned
	}
	if err := m.begin(o.At); err != nil {
		return err
	}
	abandoned := make(chan bool, 1)
	go func() {
		_, ok := <-incoming
		abandoned <- !ok
		m.ended.Store(true)
		m.waiter.Ring()
	}()
	sleeper, err := startSleeper()
	if err != nil {
		return err
	}
	err = m.loop()
	late := sleeper.stop()
	if err != nil {
		return err
	}
	if <-abandoned {
		return errAbandoned
	}
	m.report(to, late)
	return nil
}

func (m *middle) open() (err error) {
	if m.waiter, err = node.NewWaiter(); err != nil {
		return err
	}
	for i, p := range m.start.Ports {
		side := simulation.Left
		if p.Right {
			side = simulation.Right
		}
		d := &socket{port: p, id: i, host: side.Address(p.Flow, simulation.HostNumber)}
		d.device, err = link.Open(link.Config{
			Host: p.Local.Addr().String(), Port: p.Local.Port(),
			Interfaces: []link.Interface{{
				Name: side.Host(p.Flow), ID: i, MTU: m.x.Path.MTU,
				Local: side.Address(p.Flow, simulation.RouterNumber),
				Neighbors: []link.Neighbor{{
					Addr: d.host, Host: p.Remote.Addr().String(), Port: p.Remote.Port(),
				}},
			}},
		})
		if err != nil {
			return err
		}
		m.sockets = append(m.sockets, d)
		if d.device.FD() < 0 {
			d.device.Feed(m.waiter.Feed(i, m.waiter.Ring))
		} else if err := m.waiter.Add(d.device.FD(), i); err != nil {
			return err
		}
	}
	return nil
}

func (m *middle) close() {
	for _, d := range m.sockets {
		_ = d.device.Close() // an error here cannot be handled
	}
	if m.waiter != nil {
		_ = m.waiter.Close()
	}
}

func (m *middle) now() clock.Time { return clock.Time(time.Since(m.base)) + 1 }

func (m *middle) begin(at int64) error {
	m.began = clock.Time(time.Unix(0, at).Sub(m.base)) + 1
	var err error
	if m.dumbbell, err = newDumbbell(m.x, m.start.Seed, m.began); err != nil {
		return err
	}
	m.at = map[Port]*socket{}
	for _, d := range m.sockets {
		m.at[Port{Flow: d.port.Flow, Right: d.port.Right}] = d
	}
	m.dumbbell.out = m.arrived
	m.path = simulation.NewPath(m.x, m.began)
	m.path.Watch(m.dumbbell.down.link, m.dumbbell.up.link)
	if m.start.Record {
		m.path.Record()
	}
	m.warm = m.x.Warmup == 0
	return nil
}

func (m *middle) loop() error {
	runtime.LockOSThread() // this thread needs precise timers
	var ready []int
	for !m.ended.Load() {
		again := false
		for _, d := range m.sockets {
			if d.ready {
				more, err := m.read(d)
				if err != nil {
					return err
				}
				again = again || more
			}
		}
		now := m.now()
		m.advance(now)
		if err := m.flush(); err != nil {
			return err
		}
		timeout := time.Duration(-1)
		if _, due := m.dumbbell.next(); due != clock.Never {
			timeout = max(0, due.Sub(m.now()))
		}
		if again {
			timeout = 0
		}
		var err error
		if ready, err = m.waiter.Wait(timeout, ready[:0]); err != nil {
			return err
		}
		for _, i := range ready {
			m.sockets[i].ready = true
		}
	}
	return nil
}

// advance processes the events that are due. At the end of the warm-up, it first processes the
// events before that time.
func (m *middle) advance(now clock.Time) {
	if end := m.began.Add(m.x.Warmup); !m.warm && end.Due(now) {
		m.dumbbell.advance(end)
		m.path.EndWarmup(end)
		m.warm = true
	}
	m.dumbbell.advance(now)
}

func (m *middle) read(d *socket) (more bool, err error) {
	n, err := d.device.ReadBatch(m.frames)
	if errors.Is(err, link.ErrWouldBlock) {
		d.ready = false
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading from %s: %w", d.host, err)
	}
	now := m.now()
	m.advance(now)
	for i := range m.frames[:n] {
		f := &m.frames[i]
		for data := f.Data; len(data) > 0; {
			size := min(f.Size, len(data))
			m.dumbbell.send(now, d.port.Flow, d.port.Right, data[:size])
			data = data[size:]
		}
	}
	d.ready = n == len(m.frames)
	return d.ready, nil
}

func (m *middle) arrived(flow int, right bool, due clock.Time, packet []byte) {
	d := m.at[Port{Flow: flow, Right: right}]
	if d == nil {
		return
	}
	if len(d.bytes)+len(packet) > cap(d.bytes) {
		d.bytes = make([]byte, 0, max(1<<16, len(packet))) // slices of the old buffer remain valid
	}
	from := len(d.bytes)
	d.bytes = append(d.bytes, packet...)
	d.trains = append(d.trains, buffer.Train{
		Pieces: [][]byte{d.bytes[from:]}, Size: len(packet), Count: 1, Bytes: len(packet),
		Iface: d.id, NextHop: d.host,
	})
	d.due = append(d.due, due)
}

// flush writes the packets that have arrived, and records how late each is.
func (m *middle) flush() error {
	for _, d := range m.sockets {
		if len(d.trains) == 0 && d.device.Pending() == 0 {
			continue
		}
		n, err := d.device.WriteBatch(d.trains)
		if err != nil {
			return fmt.Errorf("writing to %s: %w", d.host, err)
		}
		m.lost += uint64(len(d.trains) - n)
		now := m.now()
		for _, due := range d.due {
			m.late.Add(now.Sub(due))
		}
		clear(d.trains)
		d.trains, d.due, d.bytes = d.trains[:0], d.due[:0], d.bytes[:0]
	}
	return nil
}

func (m *middle) report(to *messageWriter, woke Lateness) {
	now := m.now()
	m.advance(now)
	m.path.Advance(now)
	done := Done{
		Finished: true, Values: result.Values{}, Tallies: m.path.Tallies,
		Late: latenessOf(&m.late), Dropped: m.lost, Rate: m.path.MeanRate(),
		Until: now.Sub(m.began).Seconds(), Marks: m.path.Marks(now),
	}
	done.Late.Max = max(done.Late.Max, 0)
	if done.Late.Count == 0 {
		done.Late = woke
	}
	for _, d := range m.sockets {
		counts := d.device.Counters(d.id)
		done.Dropped += counts.Drops[link.DropKernel] + counts.Drops[link.DropRefused]
	}
	m.path.Result(now, done.Values)
	if m.start.Record {
		done.Links, done.Notes = m.path.Links(now)
		for i := range done.Links {
			sendRows(to, "events", i, done.Links[i].Events)
			done.Links[i].Events = nil
		}
	}
	to.send(&Message{Type: "done", Done: done})
}
