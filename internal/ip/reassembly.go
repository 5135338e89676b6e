package ip

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// ReassemblyConfig configures the limits of a Reassembler.
type ReassemblyConfig struct {
	// Timeout is how long to wait for a datagram's fragments after the first; 0: 20 s, as in
	// founding document 004. RFC 1122 §3.3.2 recommends at least 60 s, for slower links.
	Timeout time.Duration
	// MaxBytes is the maximum memory of all datagrams; 0: 4 MiB.
	MaxBytes int
	// MaxDatagrams is the maximum number of incomplete datagrams; 0: 1024.
	MaxDatagrams int
	// MaxFragments is the maximum number of fragments of a datagram; 0: 4096. The longest datagram
	// in the smallest fragments of a path with the minimum MTU has 2340.
	MaxFragments int
}

// The minimum limits: the share of one source is half, which must hold the longest datagram.
const (
	minReassemblyBytes     = 256 << 10
	minReassemblyDatagrams = 2
)

// ErrReassembly is an invalid ReassemblyConfig.
var ErrReassembly = errors.New("reassembly")

func (c ReassemblyConfig) withDefaults() ReassemblyConfig {
	c.Timeout = cmp.Or(c.Timeout, 20*time.Second)
	c.MaxBytes = cmp.Or(c.MaxBytes, 4<<20)
	c.MaxDatagrams = cmp.Or(c.MaxDatagrams, 1024)
	c.MaxFragments = cmp.Or(c.MaxFragments, 4096)
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

// ReassemblyInfo is the state and the counters of a Reassembler.
type ReassemblyInfo struct {
	Bytes      int // of memory
	Datagrams  int // incomplete, including refused ones until their timeout
	Fragments  uint64
	Duplicates uint64 // harmless duplicate fragments
	Whole      uint64 // completed datagrams
	Refused    uint64 // datagrams discarded because of invalid fragments
	Evicted    uint64 // datagrams discarded to make room
	TimedOut   uint64 // datagrams discarded after the timeout
}

// Discard describes discarded fragments.
type Discard struct {
	Reason DropReason
	Iface  int    // interface of the first fragment
	Count  int    // number of fragments
	First  []byte // the complete first fragment, if it had arrived and the reason is the timeout
}

// Reassembler reassembles datagrams at their destination (RFC 791 §3.2, RFC 1122 §3.3.2).
//
// It assumes hostile senders. A datagram with overlapping fragments is refused as a whole,
// including later fragments. That is RFC 5722 §4's rule for IPv6, and ensures that what a filter
// has checked is what arrives (RFC 1858 §4). An exact duplicate is not an overlap. Memory is
// allocated in pages when data arrives, so a small fragment at a large offset costs one page. At
// the memory limit the oldest datagram is evicted, or that of a source that uses more than half of
// the memory.
type Reassembler struct {
	cfg       ReassemblyConfig
	now       clock.Time // of the last Advance
	datagrams map[fragmentKey]*datagram
	sources   map[netip.Addr]*source
	ages      queue
	gone      []Discard // evicted and refused datagrams for Output

	pages []*page // free, like the next two
	idle  []*datagram
	lone  []*source
	whole []byte // returned by Input and Output
	info  ReassemblyInfo
}

// fragmentKey identifies the datagram of a fragment (RFC 791 §3.2).
type fragmentKey struct {
	src, dst netip.Addr
	id       uint16
	protocol uint8
}

// NewReassembler returns an empty Reassembler with the default limits.
func NewReassembler() *Reassembler {
	return &Reassembler{
		cfg:       ReassemblyConfig{}.withDefaults(),
		datagrams: map[fragmentKey]*datagram{}, sources: map[netip.Addr]*source{},
	}
}

// Info returns the state and the counters.
func (r *Reassembler) Info() ReassemblyInfo {
	info := r.info
	info.Datagrams = len(r.datagrams)
	return info
}

// Config returns the limits, with defaults for zeros.
func (r *Reassembler) Config() ReassemblyConfig { return r.cfg }

// Configure changes the limits, also for present fragments, or returns ErrReassembly. Memory beyond
// a new limit is freed when other fragments arrive.
func (r *Reassembler) Configure(cfg ReassemblyConfig) error {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return err
	}
	r.cfg = cfg
	return nil
}

// Input processes a fragment for this node that arrived on interface iface: b, with header h. It
// returns the datagram that the fragment completes, as one packet, which is valid until the next
// call of Input or Output; nil: none. A reason other than DropNone is why the fragment was dropped.
func (r *Reassembler) Input(now clock.Time, iface int, h *Header, b []byte) ([]byte, DropReason) {
	r.info.Fragments++
	payload := b[h.IHL:h.TotalLen]
	if reason := checkFragment(h, len(payload)); reason != DropNone {
		return nil, reason
	}
	key := fragmentKey{src: h.Src, dst: h.Dst, id: h.ID, protocol: h.Protocol}
	d := r.datagrams[key]
	if d == nil {
		d = r.begin(now, iface, key)
	}
	if d.refused != DropNone {
		return nil, d.refused // RFC 5722 §4: also refuses later fragments
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

// checkFragment checks a single fragment.
func checkFragment(h *Header, n int) DropReason {
	const leastTCP = 20
	switch {
	case n == 0:
		return DropFragmentEmpty
	case h.MF && n%fragmentUnit != 0:
		return DropFragmentLength // RFC 791 §3.1: only the last may have another length
	case h.IHL+h.FragOff+n > MaxPacketLen:
		return DropFragmentTooLong
	case h.Protocol == ProtoTCP && h.FragOff == 0 && n < leastTCP,
		h.Protocol == ProtoTCP && h.FragOff == fragmentUnit:
		// RFC 1858 §3: a split header is an attempt to pass a filter, and so is, by RFC 1858 §4, a
		// fragment that would overlap its second half. RFC 3128 says why both are refused.
		return DropFragmentTiny
	}
	return DropNone
}

// finish returns a complete datagram.
func (r *Reassembler) finish(d *datagram) ([]byte, DropReason) {
	ecn, ok := d.codepoint()
	if d.headerLen+d.end > MaxPacketLen || !ok {
		d.count-- // the last one is counted by its own reason
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

// refuse discards a datagram. Its entry stays until the timeout, so that later fragments are
// discarded, too.
func (r *Reassembler) refuse(d *datagram, reason DropReason) DropReason {
	r.info.Refused++
	r.discard(d, reason)
	r.strip(d)
	d.refused = reason
	return reason
}

// discard records that a datagram's fragments are gone.
func (r *Reassembler) discard(d *datagram, reason DropReason) {
	if d.count > 0 {
		r.gone = append(r.gone, Discard{Reason: reason, Iface: d.iface, Count: d.count})
	}
}

// Deadline returns when the oldest datagram times out.
func (r *Reassembler) Deadline() clock.Time {
	if d := r.ages.oldest; d != nil {
		return d.arrived.Add(r.cfg.Timeout)
	}
	return clock.Never
}

// Advance makes Output return the datagrams that have timed out at now.
func (r *Reassembler) Advance(now clock.Time) { r.now = now }

// Output returns the next discarded datagram. The owner calls it after each Input and Advance until
// it returns false. The result is valid until the next call.
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
