package rdt

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Sender sends objects to one receiver. One caller owns it.
type Sender struct {
	cfg        Config
	codec      codec
	schedule   schedule
	flight     flight
	timeout    timeout
	compressor compressor

	duplicates int        // consecutive acknowledgments without new information
	serial     uint64     // number of the last transmission
	progress   clock.Time // time of the start or of the last acknowledgment of new data
	started    bool
	echoed     bool // the receiver has echoed a timestamp
	err        error
	info       SenderInfo
}

// SenderInfo is a Sender's counters.
type SenderInfo struct {
	Sent          uint64 // data packets, including retransmissions
	SentBytes     uint64 // bytes with RDT's headers, without UDP and IP
	Resent        uint64 // packets in Sent that were retransmissions
	FastResent    uint64 // packets considered lost because of duplicate acknowledgments
	TimedOut      uint64 // packets considered lost because of a timeout
	Acks          uint64 // valid acknowledgments
	DuplicateAcks uint64 // acknowledgments in Acks without new information
	Requests      uint64 // valid requests, including repeated ones
	InFlight      int    // packets in the window
	SRTT          time.Duration
	Timeout       time.Duration
	Drops         Drops
}

// NewSender returns a sender of objects, which are numbered by their index. A nil object does not
// exist. The bytes must not change while the sender exists. The sender sends the objects that the
// receiver requests or that Serve names. Errors: ErrConfig, ErrObject.
func NewSender(cfg Config, objects [][]byte) (*Sender, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if len(objects) > 1<<16 {
		return nil, fmt.Errorf("%w: %d objects: must be at most 65536, one per stream", ErrObject,
			len(objects))
	}
	for i, o := range objects {
		if uint64(len(o)) > MaxObject {
			return nil, fmt.Errorf("%w: object %d has %d bytes: must be at most %d", ErrObject, i,
				len(o), uint64(MaxObject))
		}
	}
	return &Sender{
		cfg: cfg, codec: newCodec(&cfg), flight: newFlight(cfg.Window), timeout: newTimeout(&cfg),
		schedule: schedule{
			objects: objects, payload: cfg.Payload, interleave: cfg.Interleave,
			requested: map[uint16]struct{}{},
		},
	}, nil
}

// Serve sends objects in this order, without a request, to a receiver with Push. The receiver gets
// ErrAbsent for objects that do not exist. Serve returns ErrObject if a flow cannot have that many
// objects.
func (s *Sender) Serve(streams ...uint16) error {
	s.started = true
	return s.schedule.add(streams)
}

// Input processes a datagram from the receiver.
func (s *Sender) Input(now clock.Time, b []byte) { s.input(now, b, false) }

// InputSound is like Input, but does not verify the checksum of the datagram, which the caller
// knows to be intact.
func (s *Sender) InputSound(now clock.Time, b []byte) { s.input(now, b, true) }

func (s *Sender) input(now clock.Time, b []byte, sound bool) {
	if s.err != nil {
		s.info.Drops[DropClosed]++
		return
	}
	p, drop := s.codec.parse(b, sound)
	if drop == dropNone {
		switch p.kind {
		case kindRequest:
			drop = s.request(now, &p)
		case kindAck, kindEcho:
			drop = s.acknowledge(now, &p)
		default:
			drop = DropKind
		}
	}
	if drop != dropNone {
		s.info.Drops[drop]++
	}
}

// validRequest reports whether a request's payload is a list of objects of one flow.
func validRequest(payload []byte) bool {
	return len(payload) > 0 && len(payload) <= 2*MaxObjects && len(payload)%2 == 0
}

// request queues the requested objects. The first request contains the first sequence number.
func (s *Sender) request(now clock.Time, p *packet) Drop {
	if !validRequest(p.payload) {
		return DropRequest
	}
	n := len(p.payload) / 2
	var wanted [MaxObjects]uint16
	for i := range n {
		wanted[i] = uint16(p.payload[2*i])<<8 | uint16(p.payload[2*i+1])
	}
	if !s.started {
		s.started = true
		s.flight.una, s.flight.nxt = p.sequence, p.sequence
	}
	if s.Done() {
		s.progress = now
	}
	if s.schedule.add(wanted[:n]) != nil {
		return DropRequest
	}
	s.info.Requests++
	return dropNone
}

// Output appends the next packet to b: first lost packets, then new ones. It returns false if it
// has no packet to send now.
func (s *Sender) Output(now clock.Time, b []byte) ([]byte, bool) {
	if s.err != nil {
		return b, false
	}
	if _, seq, ok := s.flight.first(placeLost); ok {
		s.info.Resent++
		return s.transmit(now, b, seq), true
	}
	if s.schedule.empty() || s.flight.len() == s.cfg.Window {
		return b, false
	}
	if s.flight.len() == 0 {
		s.progress = now
	}
	return s.transmit(now, b, s.flight.push(s.schedule.next())), true
}

func (s *Sender) transmit(now clock.Time, b []byte, seq uint32) []byte {
	r := s.flight.at(seq)
	s.serial++
	r.sentAt, r.serial = now, s.serial
	s.flight.move(seq, placeSent)

	p := packet{
		stream: r.stream, state: r.state, sequence: seq, offset: r.offset, stamp: now,
		payload: s.schedule.bytes(&r.chunk),
	}
	if s.cfg.echoes() {
		p.state |= stateEcho
	}
	if s.cfg.Compress && r.size > 0 {
		if short, ok := s.compressor.compress(p.payload); ok {
			p.payload = short
			p.state |= stateCompressed
		}
	}
	before := len(b)
	b = s.codec.append(b, &p)
	s.info.Sent++
	s.info.SentBytes += uint64(len(b) - before)
	return b
}

// unfinished reports whether a flow that has begun has packets to send or in flight. If no packets
// are in flight, the flow waits for the receiver to prove its address.
func (s *Sender) unfinished() bool { return s.info.Sent > 0 && !s.Done() }

// Deadline returns the time for the next call of Advance.
func (s *Sender) Deadline() clock.Time {
	if !s.unfinished() {
		return clock.Never
	}
	due := s.progress.Add(s.cfg.Patience)
	if r, _, ok := s.flight.first(placeSent); ok {
		due = clock.Earliest(due, r.sentAt.Add(s.timeout.current))
	}
	return due
}

// Advance marks packets as lost when their timeout has expired. It fails the flow after
// Config.Patience without an acknowledgment of new data.
func (s *Sender) Advance(now clock.Time) {
	if !s.unfinished() {
		return
	}
	if s.progress.Add(s.cfg.Patience).Due(now) {
		s.err = ErrSilent
		return
	}
	wait := s.timeout.current
	for {
		// Records are in the order of transmission, so the first is the oldest.
		r, seq, ok := s.flight.first(placeSent)
		if !ok || !r.sentAt.Add(wait).Due(now) {
			return
		}
		s.info.TimedOut++
		s.timeout.expired(now, r.sentAt)
		s.flight.move(seq, placeLost)
	}
}

// Done reports whether everything requested so far has been acknowledged, or the flow has failed.
func (s *Sender) Done() bool {
	return s.err != nil || s.started && s.schedule.empty() && s.flight.len() == 0
}

// Err returns ErrSilent if the flow failed.
func (s *Sender) Err() error { return s.err }

// Info returns the sender's counters.
func (s *Sender) Info() SenderInfo {
	info := s.info
	info.InFlight = s.flight.len()
	info.SRTT, info.Timeout = s.timeout.srtt, s.timeout.current
	return info
}
