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
	// Timeout is how long to wait for an IPv4 datagram's fragments after the first; 0: 20 s, as in
	// founding document 004. RFC 1122 §3.3.2 recommends at least 60 s, for slower links.
	Timeout time.Duration
	// Timeout6 is like Timeout, for IPv6; 0: 60 s (RFC 8200 §4.5).
	Timeout6 time.Duration
	// MaxBytes is the maximum memory of all datagrams; 0: 4 MiB.
	MaxBytes int
	// MaxDatagrams is the maximum number of incomplete datagrams; 0: 1024.
	MaxDatagrams int
	// MaxFragments is the maximum number of fragments of a datagram; 0: 4096. The longest datagram
	// has 2340 if links with MTUs of 76 and 68 bytes fragment it in turn.
	MaxFragments int
}

// These are the minimum limits. The share of one source is half, which must be enough for the
// longest datagram.
const (
	minReassemblyBytes     = 256 << 10
	minReassemblyDatagrams = 2
)

const leastTCP = 20 // minimum length of a TCP header

// ErrReassembly is the error for an invalid ReassemblyConfig.
var ErrReassembly = errors.New("reassembly")

func (c ReassemblyConfig) withDefaults() ReassemblyConfig {
	c.Timeout = cmp.Or(c.Timeout, 20*time.Second)
	c.Timeout6 = cmp.Or(c.Timeout6, 60*time.Second)
	c.MaxBytes = cmp.Or(c.MaxBytes, 4<<20)
	c.MaxDatagrams = cmp.Or(c.MaxDatagrams, 1024)
	c.MaxFragments = cmp.Or(c.MaxFragments, 4096)
	return c
}

func (c ReassemblyConfig) validate() error {
	switch {
	case min(c.Timeout, c.Timeout6) < 0:
		return fmt.Errorf("%w: timeout %v must be positive", ErrReassembly,
			min(c.Timeout, c.Timeout6))
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
	Bytes      int // memory in use, in bytes
	Datagrams  int // incomplete datagrams, including refused ones until their timeout
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

// Reassembler reassembles datagrams at their destination (RFC 791 §3.2, RFC 1122 §3.3.2, RFC 8200
// §4.5).
//
// It assumes hostile senders. A datagram with overlapping fragments is refused with all later
// fragments, as RFC 5722 §4 requires for IPv6. For IPv4 this ensures that no fragment replaces data
// that a filter has checked (RFC 1858 §4). An exact duplicate is not an overlap.
// Memory is allocated in pages when data arrives, so a small fragment at a large offset costs one
// page. At the memory limit the oldest datagram is evicted, or the oldest of a source that uses
// more than half of the memory.
type Reassembler struct {
	cfg       ReassemblyConfig
	now       clock.Time // time of the last Advance
	datagrams map[fragmentKey]*datagram
	sources   map[netip.Addr]*source
	ages      [2]queue  // queue of each IP version
	discarded []Discard // evicted and refused datagrams for Output

	pages         []*page // free pages
	idleDatagrams []*datagram
	idleSources   []*source
	whole         []byte // buffer for the packet that Input or Output returns
	info          ReassemblyInfo
}

// fragmentKey identifies the datagram of a fragment (RFC 791 §3.2).
type fragmentKey struct {
	src, dst netip.Addr
	id       uint32
	protocol uint8 // protocol; 0 for IPv6, whose fragments may differ (RFC 8200 §4.5)
}

// family returns 0 for IPv4 and 1 for IPv6.
func (k *fragmentKey) family() int {
	if k.dst.Is6() {
		return 1
	}
	return 0
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

// Configure changes the limits, also for stored fragments, or returns ErrReassembly. Memory beyond
// a new limit is freed when other fragments arrive.
func (r *Reassembler) Configure(cfg ReassemblyConfig) error {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return err
	}
	r.cfg = cfg
	return nil
}

// Input processes a fragment for this node that arrived on interface iface: b, with header h. If
// the fragment completes a datagram, Input returns the datagram as one packet, which is valid until
// the next call of Input or Output. A reason other than DropNone is why the fragment was dropped.
func (r *Reassembler) Input(now clock.Time, iface int, h *Header, b []byte) ([]byte, DropReason) {
	r.info.Fragments++
	payload := b[h.Len:h.TotalLen]
	if reason := checkFragment(h, payload); reason != DropNone {
		return nil, reason
	}
	key := fragmentKey{src: h.Src, dst: h.Dst, id: h.ID, protocol: h.Protocol}
	if h.Is6() {
		key.protocol = 0
	}
	d := r.datagrams[key]
	if d == nil {
		d = r.begin(now, iface, key)
	}
	if d.refused != DropNone {
		return nil, d.refused // RFC 5722 §4: also refuses later fragments
	}
	switch d.fit(h, payload) {
	case fits:
	case duplicate:
		r.info.Duplicates++
		return nil, DropNone
	case overlap:
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
func checkFragment(h *Header, payload []byte) DropReason {
	n := len(payload)
	switch {
	case n == 0:
		return DropFragmentEmpty
	case h.MF && n%fragmentUnit != 0:
		return DropFragmentLength // RFC 791 §3.1: only the last fragment may have another length
	case isTooLong(h.Is6(), h.Len, h.FragOff+n):
		return DropFragmentTooLong
	case h.Is6():
		return checkChain(h, payload)
	case h.Protocol == ProtoTCP && h.FragOff == 0 && n < leastTCP,
		h.Protocol == ProtoTCP && h.FragOff == fragmentUnit:
		// RFC 1858 §3: a split header is an attempt to pass a filter, and so is, by RFC 1858 §4, a
		// fragment that would overlap its second half. RFC 3128 says why receivers must drop both.
		return DropFragmentTiny
	}
	return DropNone
}

// isTooLong reports whether a datagram with such a header and end bytes of payload is too long.
func isTooLong(six bool, header, end int) bool {
	if six {
		return header-fragmentLen-HeaderLen6+end > maxPayload6
	}
	return header+end > MaxPacketLen
}

// checkChain checks that the first fragment of an IPv6 datagram contains all headers up to that of
// the upper layer (RFC 7112 §5, RFC 8200 §4.5).
func checkChain(h *Header, b []byte) DropReason {
	if h.FragOff != 0 {
		return DropNone
	}
	at, next := 0, h.Protocol
	for isExtension(next) {
		end := headerEnd(b, at, next)
		switch {
		case end < 0:
			return DropFragmentTiny
		case next == NextFragment, at == 0 && next == NextHopByHop:
			return DropExtension // RFC 8200 §4.1: a second one, or not the packet's first
		}
		at, next = end, b[at]
	}
	least := 0
	switch next {
	case ProtoTCP:
		least = leastTCP
	case ProtoUDP, ProtoICMPv6:
		least = 8
	}
	if len(b)-at < least {
		return DropFragmentTiny
	}
	return DropNone
}

// FragmentProblem returns the parameter problem that reports an IPv6 fragment that Input dropped
// (RFC 8200 §4.5).
func (h *Header) FragmentProblem(drop DropReason) Refusal {
	switch {
	case drop == DropFragmentLength:
		return h.problem(drop, ProblemField, payloadLenAt)
	case drop == DropFragmentTooLong:
		return h.problem(drop, ProblemField, h.Len-fragmentLen+2)
	case drop == DropFragmentTiny:
		return h.problem(drop, ProblemChain, 0)
	case drop == DropExtension && h.Protocol == NextHopByHop:
		return h.problem(drop, ProblemNext, h.Len-fragmentLen) // RFC 8200 §4
	}
	return silent(drop)
}

// finish returns a complete datagram.
func (r *Reassembler) finish(d *datagram) ([]byte, DropReason) {
	ecn, ok := d.codepoint()
	if isTooLong(d.key.dst.Is6(), d.headerLen, d.end) || !ok {
		d.count-- // the caller counts the last fragment itself, with its own reason
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

// discard records that a datagram's fragments are discarded.
func (r *Reassembler) discard(d *datagram, reason DropReason) {
	if d.count > 0 {
		r.discarded = append(r.discarded, Discard{Reason: reason, Iface: d.iface, Count: d.count})
	}
}

// Deadline returns when the next datagram times out.
func (r *Reassembler) Deadline() clock.Time {
	return clock.Earliest(r.deadline(0), r.deadline(1))
}

// deadline returns when the oldest datagram of a family times out.
func (r *Reassembler) deadline(family int) clock.Time {
	d := r.ages[family].oldest
	if d == nil {
		return clock.Never
	}
	return d.arrived.Add([...]time.Duration{r.cfg.Timeout, r.cfg.Timeout6}[family])
}

// Advance makes Output return the datagrams that have timed out at now.
func (r *Reassembler) Advance(now clock.Time) { r.now = now }

// Output returns the next discarded datagram. The owner calls it after each Input and Advance until
// it returns false. The result is valid until the next call.
func (r *Reassembler) Output() (Discard, bool) {
	if n := len(r.discarded); n > 0 {
		last := r.discarded[n-1]
		r.discarded = r.discarded[:n-1]
		return last, true
	}
	for family := range r.ages {
		for r.deadline(family).Due(r.now) {
			d := r.ages[family].oldest
			discard := Discard{Reason: DropFragmentTimeout, Iface: d.iface, Count: d.count}
			if d.refused != DropNone {
				r.release(d)
				continue
			}
			if d.first > 0 {
				r.whole = d.fragmentZero(r.whole[:0])
				discard.First = r.whole
			}
			r.info.TimedOut++
			r.release(d)
			return discard, true
		}
	}
	return Discard{}, false
}
