package ip

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// ReassemblyConfig says how much a Reassembler keeps, and how long.
type ReassemblyConfig struct {
	// Timeout is how long a datagram's fragments are waited for, from the first one
	// on; 0: 20 s, as founding document 004 has it. RFC 1122 §3.3.2 asks for 60 s or
	// more, which was for an internet of slower links.
	Timeout time.Duration
	// MaxBytes bounds the memory of all datagrams together; 0: 4 MiB.
	MaxBytes int
	// MaxDatagrams bounds how many datagrams are begun; 0: 1024.
	MaxDatagrams int
	// MaxFragments bounds how many fragments a datagram has; 0: 4096. The longest
	// datagram in the smallest fragments of a path with the least MTU has 2340.
	MaxFragments int
}

// The least a Reassembler can do with: one source's share is half of it, and the
// longest datagram has to fit there.
const (
	minReassemblyBytes     = 256 << 10
	minReassemblyDatagrams = 2
)

// ErrReassembly is a ReassemblyConfig that cannot be.
var ErrReassembly = errors.New("reassembly")

func (c ReassemblyConfig) withDefaults() ReassemblyConfig {
	if c.Timeout == 0 {
		c.Timeout = 20 * time.Second
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 4 << 20
	}
	if c.MaxDatagrams == 0 {
		c.MaxDatagrams = 1024
	}
	if c.MaxFragments == 0 {
		c.MaxFragments = 4096
	}
	return c
}

func (c ReassemblyConfig) validate() error {
	switch {
	case c.Timeout < 0:
		return fmt.Errorf("%w: timeout %v must be positive", ErrReassembly, c.Timeout)
	case c.MaxBytes < minReassemblyBytes:
		return fmt.Errorf("%w: %d bytes: must be at least %d", ErrReassembly, c.MaxBytes,
			minReassemblyBytes)
	case c.MaxDatagrams < minReassemblyDatagrams:
		return fmt.Errorf("%w: %d datagrams: must be at least %d", ErrReassembly, c.MaxDatagrams,
			minReassemblyDatagrams)
	case c.MaxFragments < 2:
		return fmt.Errorf("%w: %d fragments a datagram: must be at least 2", ErrReassembly,
			c.MaxFragments)
	}
	return nil
}

// ReassemblyInfo is what a Reassembler holds now, and has done.
type ReassemblyInfo struct {
	Bytes      int // of memory, as it is charged
	Datagrams  int // begun, those that were refused and wait for their time-out included
	Fragments  uint64
	Duplicates uint64 // fragments that came twice, which harms nobody
	Whole      uint64 // datagrams put together
	Refused    uint64 // datagrams discarded for what their fragments were
	Evicted    uint64 // datagrams discarded for room
	TimedOut   uint64 // datagrams discarded for time
}

// Discard tells of fragments that were held and are no longer.
type Discard struct {
	Reason DropReason
	Iface  int    // where the first of them came in
	Count  int    // how many they are
	First  []byte // fragment zero, whole, if it had come and the reason is time
}

// Reassembler puts datagrams together from fragments (RFC 791 §3.2, RFC 1122
// §3.3.2) at their destination.
//
// It trusts nobody. A datagram whose fragments overlap is refused as a whole, with
// all that is still to come of it: that is RFC 5722 §4's rule for IPv6, and the one
// way in which what a filter has judged is what arrives (RFC 1858 §4). A fragment
// that comes twice, exactly, is the network's doing and no overlap. Memory is
// taken in pages as data comes, so that a small fragment at a large offset costs
// one. When it is short the oldest datagram goes, and of a source that holds more
// than half of it, that source's oldest.
type Reassembler struct {
	cfg       ReassemblyConfig
	now       clock.Time // of the last Advance
	datagrams map[fragmentKey]*datagram
	sources   map[Addr]*source
	ages      queue
	gone      []Discard // evicted and refused, until Output

	pages []*page // free, as are the next two
	idle  []*datagram
	lone  []*source
	whole []byte // what Input and Output lend
	info  ReassemblyInfo
}

// fragmentKey is what the fragments of one datagram have in common (RFC 791 §3.2).
type fragmentKey struct {
	src, dst Addr
	id       uint16
	protocol uint8
}

// NewReassembler returns one without fragments, and with the default bounds.
func NewReassembler() *Reassembler {
	return &Reassembler{
		cfg:       ReassemblyConfig{}.withDefaults(),
		datagrams: map[fragmentKey]*datagram{}, sources: map[Addr]*source{},
	}
}

// Info returns what is held and what was done.
func (r *Reassembler) Info() ReassemblyInfo {
	info := r.info
	info.Datagrams = len(r.datagrams)
	return info
}

// Config returns the bounds, with defaults for zeros.
func (r *Reassembler) Config() ReassemblyConfig { return r.cfg }

// Configure changes them, for the fragments that are held too, or returns
// ErrReassembly. What is held beyond a bound goes when others come.
func (r *Reassembler) Configure(cfg ReassemblyConfig) error {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return err
	}
	r.cfg = cfg
	return nil
}

// Input takes a fragment for this node that came by interface iface: b, whose
// header is h. It returns the datagram that the fragment completes, as one packet
// with a header of its own, lent until the next call of Input or Output; nil while
// there is none. Any reason but DropNone is that of the fragment's end.
func (r *Reassembler) Input(now clock.Time, iface int, h *Header, b []byte) ([]byte, DropReason) {
	r.info.Fragments++
	payload := b[h.IHL:h.TotalLen]
	if reason := sound(h, len(payload)); reason != DropNone {
		return nil, reason
	}
	key := fragmentKey{src: h.Src, dst: h.Dst, id: h.ID, protocol: h.Protocol}
	d := r.datagrams[key]
	if d == nil {
		d = r.begin(now, iface, key)
	}
	if d.refused != DropNone {
		return nil, d.refused // RFC 5722 §4: and so are those that have yet to come
	}
	switch d.fit(h, payload) {
	case fits:
	case twice:
		r.info.Duplicates++
		return nil, DropNone
	case overlaps:
		return nil, r.refuse(d, DropFragmentOverlap)
	case contradicts:
		return nil, r.refuse(d, DropFragmentEnd)
	}
	if d.count >= r.cfg.MaxFragments {
		return nil, r.refuse(d, DropFragmentCount)
	}
	r.admit(d, h.FragOff, len(payload))
	d.add(h, b)
	if !d.complete() {
		return nil, DropNone
	}
	return r.finish(d)
}

// sound judges a fragment by itself.
func sound(h *Header, n int) DropReason {
	const leastTCP = 20
	switch {
	case n == 0:
		return DropFragmentEmpty
	case h.MF && n%fragmentUnit != 0:
		return DropFragmentLength // RFC 791 §3.1: only the last one can be
	case h.IHL+h.FragOff+n > MaxPacketLen:
		return DropFragmentTooLong
	case h.Protocol == ProtoTCP && h.FragOff == 0 && n < leastTCP,
		h.Protocol == ProtoTCP && h.FragOff == fragmentUnit:
		// RFC 1858 §3: a header cut in two is there to pass a filter, as is, by RFC 1858
		// §4, what would lie over its second half. RFC 3128 has why both are refused.
		return DropFragmentTiny
	}
	return DropNone
}

// finish hands out a datagram that is whole.
func (r *Reassembler) finish(d *datagram) ([]byte, DropReason) {
	ecn, ok := d.codepoint()
	if d.headerLen+d.end > MaxPacketLen || !ok {
		d.count-- // the last one is told of by its own reason
		if ok {
			return nil, r.refuse(d, DropFragmentTooLong)
		}
		return nil, r.refuse(d, DropFragmentECN)
	}
	r.whole = d.packet(r.whole[:0], ecn)
	r.release(d)
	r.info.Whole++
	return r.whole, DropNone
}

// refuse discards a datagram. What is left of it has what comes of it later
// discarded, too, until its time is over.
func (r *Reassembler) refuse(d *datagram, reason DropReason) DropReason {
	r.info.Refused++
	r.discard(d, reason)
	r.strip(d)
	d.refused = reason
	return reason
}

// discard notes that the fragments of a datagram are gone.
func (r *Reassembler) discard(d *datagram, reason DropReason) {
	if d.count > 0 {
		r.gone = append(r.gone, Discard{Reason: reason, Iface: d.iface, Count: d.count})
	}
}

// Deadline returns when the oldest datagram's time is over.
func (r *Reassembler) Deadline() clock.Time {
	if d := r.ages.oldest; d != nil {
		return d.arrived.Add(r.cfg.Timeout)
	}
	return clock.Never
}

// Advance has Output tell of the datagrams whose time is over at now.
func (r *Reassembler) Advance(now clock.Time) { r.now = now }

// Output returns the next discarded datagram. The owner asks until there is none
// after each Input and Advance; what it is told is lent until its next call.
func (r *Reassembler) Output() (Discard, bool) {
	if n := len(r.gone); n > 0 {
		last := r.gone[n-1]
		r.gone = r.gone[:n-1]
		return last, true
	}
	for d := r.ages.oldest; d != nil && r.Deadline().Due(r.now); d = r.ages.oldest {
		told := Discard{Reason: DropFragmentTimeout, Iface: d.iface, Count: d.count}
		if d.refused != DropNone {
			r.release(d)
			continue
		}
		if d.first > 0 {
			r.whole = d.fragmentZero(r.whole[:0])
			told.First = r.whole
		}
		r.info.TimedOut++
		r.release(d)
		return told, true
	}
	return Discard{}, false
}
