package link

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// Delayer is a Device that holds packets back. What is due it hands over when it is
// asked by ReadBatch, whichever way it goes.
type Delayer interface {
	Device
	// Deadline is when to call ReadBatch though nothing has arrived; never: no need.
	Deadline() clock.Time
}

// Impairment is what happens to the packets of one interface on their way.
type Impairment struct {
	// Iface is the node's number for the interface.
	Iface int
	// Out and In are what happens to what the node sends and what it receives.
	Out, In netem.Config
	// Stream gives random streams to the parts of both: see netem.Streams.
	Stream func(part string) *rand.Rand
}

// Impaired is a device with a worse link than it has.
type Impaired struct {
	dev     Device
	now     func() clock.Time
	lanes   []*lane
	frames  []buffer.Frame
	packets [][]byte // of a frame
	batch   *buffer.Batch
	full    bool // the device beneath takes no more
	more    bool // it may have more to read
}

var (
	_ Delayer = (*Impaired)(nil)
	_ Feeder  = (*Impaired)(nil)
)

// lane is the two directions of one interface.
type lane struct {
	iface   int
	out, in *netem.Link
	outWill netem.Config // what the links were told
	inWill  netem.Config
	none    bool // which is nothing
}

// Bounds of an impaired device: what it takes from above in one go, and what it reads
// from below in one turn.
const (
	impairedRoom  = 4096
	impairedReads = 16
)

// Impair puts netem between a device and its owner. There is an Impairment for each
// interface of the device. Now is the owner's clock.
func Impair(d Device, now func() clock.Time, list ...Impairment) (*Impaired, error) {
	i := &Impaired{
		dev: d, now: now, frames: make([]buffer.Frame, 16), batch: buffer.NewBatch(),
	}
	for _, m := range list {
		one, err := newLane(&m)
		if err != nil {
			return nil, err
		}
		i.lanes = append(i.lanes, one)
	}
	return i, nil
}

func newLane(m *Impairment) (*lane, error) {
	one := &lane{iface: m.Iface, outWill: m.Out, inWill: m.In}
	for _, way := range []struct {
		link **netem.Link
		cfg  netem.Config
		in   bool
	}{{&one.out, m.Out, false}, {&one.in, m.In, true}} {
		l, err := netem.New(way.cfg, streamOf(m.Stream, way.in))
		if err != nil {
			return nil, fmt.Errorf("link: interface %d: %w", m.Iface, err)
		}
		*way.link = l
	}
	one.none = m.Out.None() && m.In.None()
	return one, nil
}

// Carry puts the same impairments before another device, or before the same with other interfaces:
// those that stay keep what is on its way, and to those that are new nothing is done.
func (i *Impaired) Carry(d Device, list ...Impairment) error {
	var lanes []*lane
	for _, m := range list {
		one := i.lane(m.Iface)
		if one == nil {
			var err error
			if one, err = newLane(&m); err != nil {
				return err
			}
		}
		lanes = append(lanes, one)
	}
	i.dev, i.lanes, i.full, i.more = d, lanes, false, true
	return nil
}

// streamOf is the stream of one direction.
func streamOf(stream func(string) *rand.Rand, in bool) func(string) *rand.Rand {
	name := "out "
	if in {
		name = "in "
	}
	return func(part string) *rand.Rand { return stream(name + part) }
}

// Unwrap returns the device beneath.
func (i *Impaired) Unwrap() Device { return i.dev }

// Impairments returns what was done to the packets of an interface.
func (i *Impaired) Impairments(iface int) (out, in netem.Counters) {
	if l := i.lane(iface); l != nil {
		return l.out.Counters(), l.in.Counters()
	}
	return out, in
}

// Configs returns what an interface was told to do to packets.
func (i *Impaired) Configs(iface int) (out, in netem.Config) {
	if l := i.lane(iface); l != nil {
		return l.outWill, l.inWill
	}
	return out, in
}

// Links returns both directions of an interface, to be looked at; nil if it is none of the
// device's.
func (i *Impaired) Links(iface int) (out, in *netem.Link) {
	if l := i.lane(iface); l != nil {
		return l.out, l.in
	}
	return nil, nil
}

// Change has one direction of an interface do something else to packets from now on:
// see netem.Link.Change for those that are on their way.
func (i *Impaired) Change(
	iface int, in bool, cfg netem.Config, stream func(part string) *rand.Rand,
) error {
	l := i.lane(iface)
	if l == nil {
		return fmt.Errorf("link: interface %d is not the device's", iface)
	}
	way, will := l.out, &l.outWill
	if in {
		way, will = l.in, &l.inWill
	}
	if err := way.Change(i.now(), cfg, streamOf(stream, in)); err != nil {
		return fmt.Errorf("link: interface %d: %w", iface, err)
	}
	*will = cfg
	l.none = l.outWill.None() && l.inWill.None()
	return nil
}

// Clear sets the counts of an interface to zero.
func (i *Impaired) Clear(iface int) {
	if l := i.lane(iface); l != nil {
		l.out.Clear()
		l.in.Clear()
	}
}

// Idle reports whether the device does nothing to packets and holds none, so that its
// owner may do without it. It gives back its memory then.
func (i *Impaired) Idle() bool {
	for _, l := range i.lanes {
		if !l.none || !l.empty() {
			return false
		}
	}
	for _, l := range i.lanes {
		l.out.Release()
		l.in.Release()
	}
	return !i.more
}

// empty reports whether no packet is on its way.
func (l *lane) empty() bool {
	out, _ := l.out.Inside()
	in, _ := l.in.Inside()
	return out+in == 0
}

// lane returns the directions of an interface, nil if it is not the device's.
func (i *Impaired) lane(iface int) *lane {
	for _, l := range i.lanes {
		if l.iface == iface {
			return l
		}
	}
	return nil
}

// ReadBatch implements Device: what has come through by now.
func (i *Impaired) ReadBatch(frames []buffer.Frame) (int, error) {
	now := i.now()
	err := i.send(now)
	n, readErr := i.receive(now)
	if readErr != nil && !errors.Is(readErr, ErrWouldBlock) {
		return 0, readErr
	}
	given := i.deliver(now, frames)
	if given == 0 && n == 0 && err == nil {
		err = ErrWouldBlock
	}
	return given, err
}

// receive puts what has arrived on the way in.
func (i *Impaired) receive(now clock.Time) (frames int, err error) {
	for _, l := range i.lanes {
		l.in.Advance(now)
	}
	i.more = false
	for range impairedReads {
		n, err := i.dev.ReadBatch(i.frames)
		frames += n
		for k := range i.frames[:n] {
			i.enter(now, &i.frames[k])
		}
		if n < len(i.frames) {
			return frames, err
		}
	}
	i.more = true
	return frames, nil
}

func (i *Impaired) enter(now clock.Time, f *buffer.Frame) {
	l := i.lane(f.Iface)
	if l == nil {
		return // the device beneath has invented an interface
	}
	i.packets = f.Packets(i.packets[:0])
	l.in.InputTrain(now, 0, &buffer.Train{Pieces: i.packets, Size: f.Size, Bytes: len(f.Data)})
}

// deliver fills frames with what has come through.
func (i *Impaired) deliver(now clock.Time, frames []buffer.Frame) int {
	n := 0
	for _, l := range i.lanes {
		for n < len(frames) {
			data, _, ok := l.in.Output(now)
			if !ok {
				break
			}
			frames[n] = buffer.Frame{Data: data, Size: len(data), Iface: l.iface}
			n++
		}
	}
	return n
}

// WriteBatch implements Device.
func (i *Impaired) WriteBatch(trains []buffer.Train) (int, error) {
	now := i.now()
	for k := range trains {
		t := &trains[k]
		if l := i.lane(t.Iface); l != nil {
			l.out.InputTrain(now, hopTag(t.NextHop), t)
		}
	}
	return len(trains), i.send(now)
}

// hopTag is a next hop as a tag, hopOf the way back.
func hopTag(hop [4]byte) uint64 {
	return uint64(hop[0])<<24 | uint64(hop[1])<<16 | uint64(hop[2])<<8 | uint64(hop[3])
}

func hopOf(tag uint64) [4]byte {
	return [4]byte{byte(tag >> 24), byte(tag >> 16), byte(tag >> 8), byte(tag)}
}

// send gives the device beneath what has come through by now, as far as it takes it.
func (i *Impaired) send(now clock.Time) error {
	var first error
	if i.dev.Pending() > 0 {
		_, first = i.dev.WriteBatch(nil)
	}
	for _, l := range i.lanes {
		l.out.Advance(now)
	}
	for again := true; again; {
		again = i.gather(now)
		if trains := i.batch.Trains(); len(trains) > 0 {
			if _, err := i.dev.WriteBatch(trains); err != nil && first == nil {
				first = err
			}
			i.batch.Reset()
		}
	}
	return first
}

// gather fills the batch and reports whether to ask again. It asks until nothing is
// due or the device beneath has said that it has no room: then it tells when it has.
func (i *Impaired) gather(now clock.Time) bool {
	i.full = false
	room := i.dev.Room()
	for _, l := range i.lanes {
		for l.out.Deadline().Due(now) {
			if i.full = room <= 0; i.full || i.batch.Full() {
				return len(i.batch.Trains()) > 0
			}
			data, tag, _ := l.out.Output(now)
			i.batch.Begin(l.iface, hopOf(tag), len(data), false)
			i.batch.Add(data)
			room--
		}
	}
	return false
}

// Room implements Device.
func (i *Impaired) Room() int {
	if i.full {
		return 0
	}
	return impairedRoom
}

// Pending implements Device.
func (i *Impaired) Pending() int { return i.dev.Pending() }

// FD implements Device.
func (i *Impaired) FD() int { return i.dev.FD() }

// Feed implements Feeder.
func (i *Impaired) Feed(ready func()) {
	if f, ok := i.dev.(Feeder); ok {
		f.Feed(ready)
	}
}

// Deadline implements Delayer.
func (i *Impaired) Deadline() clock.Time {
	if i.more {
		return 1 // at once
	}
	t := clock.Never
	for _, l := range i.lanes {
		t = clock.Earliest(t, l.in.Deadline())
		if !i.full { // else the device beneath says when it takes more
			t = clock.Earliest(t, l.out.Deadline())
		}
	}
	return t
}

// Close implements Device. What was sent goes out at once: the last word of a closing
// node may be on its way.
func (i *Impaired) Close() error {
	const end = clock.Time(math.MaxInt64)
	_ = i.send(end) // the device is to be closed whatever comes of it
	return i.dev.Close()
}
