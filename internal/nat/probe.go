package nat

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

const (
	probeInterval = 500 * time.Millisecond
	// probeTries is how often a request is sent if no filter can drop its answer, and filterTries
	// if a filter can drop it.
	probeTries  = 6
	filterTries = 3
)

// step is a test of RFC 5780.
type step uint8

const (
	stepBinding    step = iota // RFC 5780 §4.4 test I
	stepFilterBoth             // RFC 5780 §4.4 test II: answer from another address and port
	stepFilterPort             // RFC 5780 §4.4 test III: answer from another port
	stepMapping                // RFC 5780 §4.3 test I, with the second socket
	stepOtherAddr              // RFC 5780 §4.3 test II: request to another address
	stepOtherPort              // RFC 5780 §4.3 test III: request to another address and port
	stepDone
)

// Probe finds out how the NATs between its two sockets and a Reflector behave (RFC 5780 §4). The
// sockets must not have been used before. There are two, because an answer that a filter accepts
// creates a session, and later packets to the answer's sender would use that session's mapping.
type Probe struct {
	server netip.AddrPort
	rng    *rand.Rand
	step   step
	id     transaction
	tries  int
	due    clock.Time // time of the next try
	other  netip.AddrPort
	first  netip.AddrPort // outside endpoint of requests to the server's first address
	second netip.AddrPort
	found  Found
}

// Found is the result of a Probe.
type Found struct {
	Outside   netip.AddrPort // socket's endpoint as the server sees it
	Mapping   Behavior
	Filtering Behavior
	// Failed is set if the server has not answered, and Single if it has no second address.
	Failed, Single bool
}

// NewProbe returns a probe of the path to a server. It makes the identifiers of requests with rng.
func NewProbe(server netip.AddrPort, rng *rand.Rand) *Probe {
	p := &Probe{server: server, rng: rng}
	p.begin(stepBinding)
	return p
}

func (p *Probe) begin(s step) {
	p.step, p.tries, p.due = s, 0, 1
	binary.BigEndian.PutUint64(p.id[:], p.rng.Uint64())
	binary.BigEndian.PutUint32(p.id[8:], p.rng.Uint32())
}

// Done returns the result when the probe is over.
func (p *Probe) Done() (Found, bool) { return p.found, p.step == stepDone }

// Deadline returns when Advance is due next.
func (p *Probe) Deadline() clock.Time {
	if p.step == stepDone {
		return clock.Never
	}
	return p.due
}

// Output returns the next datagram to send, its destination, and the number of its socket, 0 or 1.
func (p *Probe) Output(now clock.Time) (b []byte, to netip.AddrPort, socket int, ok bool) {
	if p.step == stepDone || !p.due.Due(now) || p.tries >= p.maxTries() {
		return nil, to, 0, false
	}
	if p.step >= stepMapping {
		socket = 1
	}
	p.tries++
	p.due = now.Add(probeInterval)
	change := uint32(0)
	to = p.server
	switch p.step {
	case stepFilterBoth:
		change = changeAddr | changePort
	case stepFilterPort:
		change = changePort
	case stepOtherAddr:
		to = netip.AddrPortFrom(p.other.Addr(), p.server.Port())
	case stepOtherPort:
		to = p.other
	case stepBinding, stepMapping, stepDone:
	}
	return appendRequest(nil, p.id, change), to, socket, true
}

func (p *Probe) maxTries() int {
	if p.step == stepFilterBoth || p.step == stepFilterPort {
		return filterTries
	}
	return probeTries
}

// Advance ends the test of a request that was not answered in time.
func (p *Probe) Advance(now clock.Time) {
	if p.step == stepDone || p.tries < p.maxTries() || !p.due.Due(now) {
		return
	}
	switch p.step {
	case stepFilterBoth:
		p.begin(stepFilterPort)
	case stepFilterPort:
		p.found.Filtering = AddressPortDependent
		p.begin(stepMapping)
	default:
		p.found.Failed = true
		p.step = stepDone
	}
}

// Input processes a datagram of a socket.
func (p *Probe) Input(b []byte) {
	m, ok := parseSTUN(b)
	if !ok || m.typ != stunSuccess || m.id != p.id || !m.mapped.IsValid() {
		return
	}
	switch p.step {
	case stepBinding:
		p.other, p.found.Outside = m.other, m.mapped
		if !m.other.IsValid() || m.other.Addr() == p.server.Addr() {
			p.found.Single, p.step = true, stepDone
			return
		}
		p.begin(stepFilterBoth)
	case stepFilterBoth:
		p.begin(stepMapping) // the filter is endpoint-independent
	case stepFilterPort:
		p.found.Filtering = AddressDependent
		p.begin(stepMapping)
	case stepMapping:
		p.first = m.mapped
		p.begin(stepOtherAddr)
	case stepOtherAddr:
		if p.second = m.mapped; p.second == p.first {
			p.step = stepDone // the mapping is endpoint-independent
			return
		}
		p.begin(stepOtherPort)
	case stepOtherPort:
		p.found.Mapping = AddressDependent
		if m.mapped != p.second {
			p.found.Mapping = AddressPortDependent
		}
		p.step = stepDone
	case stepDone:
	}
}
