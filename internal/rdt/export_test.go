package rdt

import "github.com/tidepool-net/tidepool/internal/clock"

// Tests use these flags to build packets that no engine sends.
const (
	StateEnd        = uint16(stateEnd)
	StateCompressed = uint16(stateCompressed)
	StateEcho       = uint16(stateEcho)
	StateAbsent     = uint16(stateAbsent)
	StateRequest    = uint16(stateRequest)
	MaxAcks         = maxAcks
)

// Raw is a packet with arbitrary fields.
type Raw struct {
	Sequence, Offset, Arrived uint32
	Stream, State             uint16
	Stamp                     clock.Time
	Payload                   []byte
}

// Data returns r as data or a request, with a valid checksum.
func (r Raw) Data(cfg Config) []byte { return r.render(cfg, kindData) }

// Ack returns r as an acknowledgment.
func (r Raw) Ack(cfg Config) []byte { return r.render(cfg, kindAck) }

// Echo returns r as an acknowledgment with an echo.
func (r Raw) Echo(cfg Config) []byte { return r.render(cfg, kindEcho) }

func (r Raw) render(cfg Config, k kind) []byte {
	c := newCodec(&cfg)
	return c.append(nil, &packet{
		kind: k, stream: r.Stream, state: state(r.State), sequence: r.Sequence,
		offset: r.Offset, arrived: r.Arrived, stamp: r.Stamp, payload: r.Payload,
	})
}

// Compress compresses b as a sender does.
func Compress(b []byte) []byte {
	var s compressor
	short, _ := s.compress(b)
	return short
}

// AppendListing appends a listing as text.
func AppendListing(b []byte, l *Listing) []byte { return l.append(b) }
