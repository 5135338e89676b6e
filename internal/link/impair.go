package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// Impairment is the impairment of one interface.
type Impairment struct {
	// Iface is the node's number of the interface.
	Iface int
	// Out and In are the impairments of sent and received packets.
	Out, In netem.Config
	// Stream returns a random stream for each part of the two impairments: see netem.Streams.
	Stream func(part string) *rand.Rand
}

// Impaired is a device with impairments on top of another.
type Impaired struct {
	dev     Device
	now     func() clock.Time
	lanes   []*lane
	frames  []buffer.Frame
	packets [][]byte // packets of one frame
	batch   *buffer.Batch
	tags    map[netip.Addr]uint64 // IPv6 next hops with the tags that tagOf assigns
	hops    []netip.Addr          // next hops by tag
	full    bool                  // the underlying device accepts no more packets
	more    bool                  // the underlying device may have more to read
}

var _ Feeder = (*Impaired)(nil)

// lane contains the two directions of one interface.
type lane struct {
	iface     int
	out, in   *netem.Link
	outConfig netem.Config // configurations of the two links
	inConfig  netem.Config
	none      bool // the interface has no impairments
}

// These are limits of an impaired device: packets of a WriteBatch, reads of a ReadBatch, and next
// hops.
const (
	impairedRoom  = 4096
	impairedReads = 16

	firstTag = 1 << 32 // tags of IPv4 addresses are smaller
	maxHops  = 4096
)

// Impair adds impairments to a device, one Impairment for each interface. now is the owner's clock.
func Impair(d Device, now func() clock.Time, list ...Impairment) (*Impaired, error) {
	i := &Impaired{
		dev: d, now: now, frames: make([]buffer.Frame, 16), batch: buffer.NewBatch(),
		tags: map[netip.Addr]uint64{},
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
	one := &lane{iface: m.Iface, outConfig: m.Out, inConfig: m.In}
	for _, dir := range []struct {
		link **netem.Link
		cfg  netem.Config
		in   bool
	}{{&one.out, m.Out, false}, {&one.in, m.In, true}} {
		l, err := netem.New(dir.cfg, streamOf(m.Stream, dir.in))
		if err != nil {
			return nil, fmt.Errorf("link: interface %d: %w", m.Iface, err)
		}
		*dir.link = l
	}
	one.none = m.Out.None() && m.In.None()
	return one, nil
}

// MoveTo moves the impairments to another device, or to the same device with other interfaces.
// Interfaces that stay keep their impairments and packets in transit; list applies to new ones.
func (i *Impaired) MoveTo(d Device, list ...Impairment) error {
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

// streamOf returns the random streams of one direction.
func streamOf(stream func(string) *rand.Rand, in bool) func(string) *rand.Rand {
	name := "out "
	if in {
		name = "in "
	}
	return func(part string) *rand.Rand { return stream(name + part) }
}

// Unwrap returns the underlying device.
func (i *Impaired) Unwrap() Device { return i.dev }

// Impairments returns the counters of an interface's impairments.
func (i *Impaired) Impairments(iface int) (out, in netem.Counters) {
	if l := i.lane(iface); l != nil {
		return l.out.Counters(), l.in.Counters()
	}
	return out, in
}

// Configs returns the configurations of an interface's impairments.
func (i *Impaired) Configs(iface int) (out, in netem.Config) {
	if l := i.lane(iface); l != nil {
		return l.outConfig, l.inConfig
	}
	return out, in
}

// Links returns both directions of an interface for reading; nil: the interface is unknown.
func (i *Impaired) Links(iface int) (out, in *netem.Link) {
	if l := i.lane(iface); l != nil {
		return l.out, l.in
	}
	return nil, nil
}

// Change replaces the impairment of one direction of an interface. netem.Link.Change describes what
// happens to packets in transit.
func (i *Impaired) Change(
	iface int, in bool, cfg netem.Config, stream func(part string) *rand.Rand,
) error {
	l := i.lane(iface)
	if l == nil {
		return fmt.Errorf("link: the device has no interface %d", iface)
	}
	dir, current := l.out, &l.outConfig
	if in {
		dir, current = l.in, &l.inConfig
	}
	if err := dir.Change(i.now(), cfg, streamOf(stream, in)); err != nil {
		return fmt.Errorf("link: interface %d: %w", iface, err)
	}
	*current = cfg
	l.none = l.outConfig.None() && l.inConfig.None()
	return nil
}

// Clear resets the counters of an interface.
func (i *Impaired) Clear(iface int) {
	if l := i.lane(iface); l != nil {
		l.out.Clear()
		l.in.Clear()
	}
}

// Idle reports whether the device has no impairments and no packets, so that it can be removed. If
// so, it frees its memory.
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

// empty reports whether no packet is in transit.
func (l *lane) empty() bool {
	out, _ := l.out.Inside()
	in, _ := l.in.Inside()
	return out+in == 0
}

// lane returns the directions of an interface; nil: the interface is unknown.
func (i *Impaired) lane(iface int) *lane {
	for _, l := range i.lanes {
		if l.iface == iface {
			return l
		}
	}
	return nil
}

// ReadBatch implements Device: it returns packets whose delay is over.
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

// receive moves arrived packets into the receiving links.
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
		return // the interface is unknown
	}
	i.packets = f.Packets(i.packets[:0])
	l.in.InputTrain(now, 0, &buffer.Train{Pieces: i.packets, Size: f.Size, Bytes: len(f.Data)})
}

// deliver fills frames with packets that have left the receiving links.
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
			l.out.InputTrain(now, i.tagOf(t.NextHop), t)
		}
	}
	return len(trains), i.send(now)
}

// tagOf converts a next hop to a tag, and hopOf converts it back. The tag of an IPv4 address is its
// number. IPv6 addresses get the following tags, in the order of their first use. A device has tags
// for at most maxHops of these neighbors, and loses packets to others.
func (i *Impaired) tagOf(hop netip.Addr) uint64 {
	if hop.Is4() {
		b := hop.As4()
		return uint64(binary.BigEndian.Uint32(b[:]))
	}
	tag, ok := i.tags[hop]
	if !ok {
		tag = firstTag + uint64(len(i.hops))
		if len(i.hops) < maxHops {
			i.tags[hop], i.hops = tag, append(i.hops, hop)
		}
	}
	return tag
}

func (i *Impaired) hopOf(tag uint64) (hop netip.Addr) {
	if tag >= firstTag {
		if n := tag - firstTag; n < uint64(len(i.hops)) {
			hop = i.hops[n]
		}
		return hop
	}
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(tag))
	return netip.AddrFrom4(b)
}

// send passes on the packets that have left the sending links, as long as the underlying device has
// room.
func (i *Impaired) send(now clock.Time) error {
	var first error
	if i.dev.Pending() > 0 {
		_, first = i.dev.WriteBatch(nil)
	}
	for _, l := range i.lanes {
		l.out.Advance(now)
	}
	for more := true; more; {
		more = i.gather(now)
		if trains := i.batch.Trains(); len(trains) > 0 {
			if _, err := i.dev.WriteBatch(trains); err != nil && first == nil {
				first = err
			}
			i.batch.Reset()
		}
	}
	return first
}

// gather fills the batch and reports whether to call it again. It stops when nothing is due or the
// underlying device has no room. The device then signals when it has room.
func (i *Impaired) gather(now clock.Time) bool {
	i.full = false
	room := i.dev.Room()
	for _, l := range i.lanes {
		for l.out.Deadline().Due(now) {
			if i.full = room <= 0; i.full || i.batch.Full() {
				return len(i.batch.Trains()) > 0
			}
			data, tag, _ := l.out.Output(now)
			i.batch.Begin(l.iface, i.hopOf(tag), len(data), false)
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

// Deadline returns when to call ReadBatch next even if nothing arrives.
func (i *Impaired) Deadline() clock.Time {
	if i.more {
		return 1 // the device has work at once
	}
	t := clock.Never
	for _, l := range i.lanes {
		t = clock.Earliest(t, l.in.Deadline())
		if !i.full { // if full, the underlying device signals when it has room
			t = clock.Earliest(t, l.out.Deadline())
		}
	}
	return t
}

// Close implements Device. It sends delayed packets at once, because they may include a closing
// node's last messages.
func (i *Impaired) Close() error {
	const end = clock.Time(math.MaxInt64)
	_ = i.send(end) // an error must not prevent closing the device
	return i.dev.Close()
}
