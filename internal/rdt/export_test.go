package rdt

import "github.com/tidepool-net/tidepool/internal/clock"

// What tests and fuzzers need to write packets that no engine would.
const (
	StateEnd      = uint16(stateEnd)
	StateSqueezed = uint16(stateSqueezed)
	StateEcho     = uint16(stateEcho)
	StateAbsent   = uint16(stateAbsent)
	StateRequest  = uint16(stateRequest)
	MaxAcks       = maxAcks
)

// Raw is a packet that can claim to be anything.
type Raw struct {
	Sequence, Offset, Arrived uint32
	Stream, State             uint16
	Stamp                     clock.Time
	Payload                   []byte
}

// Data returns r as data or a request, with a good checksum.
func (r Raw) Data(cfg Config) []byte { return r.render(cfg, kindData) }

// Ack returns r as an acknowledgment.
func (r Raw) Ack(cfg Config) []byte { return r.render(cfg, kindAck) }

// Echo returns r as an acknowledgment with a name.
func (r Raw) Echo(cfg Config) []byte { return r.render(cfg, kindEcho) }

func (r Raw) render(cfg Config, k kind) []byte {
	c := newCodec(&cfg)
	return c.append(nil, &packet{
		kind: k, stream: r.Stream, state: state(r.State), sequence: r.Sequence,
		offset: r.Offset, arrived: r.Arrived, stamp: r.Stamp, payload: r.Payload,
	})
}

// Squeeze returns b compressed as a sender does it.
func Squeeze(b []byte) []byte {
	var s squeezer
	short, _ := s.squeeze(b)
	return short
}

// AppendListing appends a listing as text.
func AppendListing(b []byte, l *Listing) []byte { return l.append(b) }
