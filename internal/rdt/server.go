package rdt

import (
	"crypto/md5"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// MaxFlows is the maximum number of receivers of a server. A new receiver replaces the receiver
// that finished first, or else the oldest receiver that has never acknowledged anything. If there
// is neither, the server rejects the request.
const MaxFlows = 64

// maxServed is the maximum number of ended flows that wait for Next.
const maxServed = 256

// Object is an object of a server.
type Object struct {
	Entry
	// Data must not change while the server exists.
	Data []byte
}

// Server serves named objects at one port. It has a Sender for each receiver. Each receiver chooses
// the checksum of its flow. Only one caller uses a Server.
type Server struct {
	cfg     Config
	data    [][]byte // data by object number; the listing is at ListingStream
	codecs  [CRC32C + 1]codec
	flows   []*flow // at most MaxFlows flows
	turn    int     // index of the flow that sends next
	ended   []Flow  // at most maxServed ended flows
	refused uint64
	unknown uint64
}

// flow is a server's state for one receiver.
type flow struct {
	Flow
	sender   *Sender
	doneAt   clock.Time // when the flow was done, or Never
	reported uint64     // number of packets sent before the last report
}

// Flow describes the flow to one receiver.
type Flow struct {
	Peer netip.AddrPort
	// Objects and Bytes count the requested objects that exist, without the listing.
	Objects int
	Bytes   int64
	Began   clock.Time
	Took    time.Duration // time until all was acknowledged, the flow failed, or now
	Done    bool          // everything requested has been acknowledged
	Err     error         // nil or ErrSilent
	Sender  SenderInfo
}

// NewServer returns a server of objects. All senders use cfg, except for the checksum. Errors:
// ErrConfig; ErrObject if there are too many, if a name is invalid or a duplicate, if a size is
// wrong, or if the listing is longer than MaxListing.
func NewServer(cfg Config, objects []Object) (*Server, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if len(objects) > MaxEntries {
		return nil, fmt.Errorf("%w: %d objects: must be at most %d in one listing", ErrObject,
			len(objects), MaxEntries)
	}
	l := Listing{Payload: cfg.Payload, Window: cfg.Window}
	s := &Server{cfg: cfg, data: make([][]byte, 1, len(objects)+1)}
	names := make(map[string]struct{}, len(objects))
	for i := range objects {
		o := &objects[i]
		_, twice := names[o.Name]
		switch {
		case !ValidName(o.Name):
			return nil, fmt.Errorf("%w: invalid name %q", ErrObject, o.Name)
		case twice:
			return nil, fmt.Errorf("%w: duplicate name %q", ErrObject, o.Name)
		case o.Size != int64(len(o.Data)) || o.Size > MaxObject:
			return nil, fmt.Errorf("%w: %q: invalid size: %d bytes", ErrObject, o.Name, len(o.Data))
		}
		names[o.Name] = struct{}{}
		l.Entries = append(l.Entries, o.Entry)
		s.data = append(s.data, slices.Clip(o.Data))
		if o.Data == nil {
			s.data[len(s.data)-1] = []byte{}
		}
	}
	s.data[ListingStream] = l.append(nil)
	if n := len(s.data[ListingStream]); n > MaxListing {
		return nil, fmt.Errorf("%w: the listing has %d bytes: must be at most %d", ErrObject, n,
			MaxListing)
	}
	for kind := range s.codecs {
		cfg.Checksum = Checksum(kind)
		s.codecs[kind] = newCodec(&cfg)
	}
	return s, nil
}

// Input processes a datagram from a receiver. If the peer is unknown, only a request starts a flow.
func (s *Server) Input(now clock.Time, from netip.AddrPort, b []byte) {
	i := slices.IndexFunc(s.flows, func(f *flow) bool { return f.Peer == from })
	if i < 0 {
		kind, ok := s.isRequest(b)
		if !ok {
			s.unknown++
			return
		}
		if !s.room(now) {
			s.refused++
			return
		}
		i = len(s.flows)
		s.flows = append(s.flows, s.newFlow(now, from, kind))
	}
	f := s.flows[i]
	f.sender.Input(now, b)
	s.updateDone(now, f)
}

// isRequest reports whether b is a valid request, and which checksum it has.
func (s *Server) isRequest(b []byte) (Checksum, bool) {
	for kind := range s.codecs {
		p, drop := s.codecs[kind].parse(b, false)
		if drop == dropNone && p.kind == kindRequest && validRequest(p.payload) {
			return Checksum(kind), true
		}
	}
	return 0, false
}

// room reports whether there is room for another flow. It removes an old flow if necessary.
func (s *Server) room(now clock.Time) bool {
	if len(s.flows) < MaxFlows {
		return true
	}
	victim, least := -1, clock.Never
	for i, f := range s.flows {
		if f.doneAt != clock.Never && (victim < 0 || f.doneAt < least) {
			victim, least = i, f.doneAt
		}
	}
	if victim < 0 { // the list of flows is sorted by start
		victim = slices.IndexFunc(s.flows, func(f *flow) bool {
			return f.sender.info.Acks == 0 && now.Sub(f.Began) >= s.cfg.Timeout
		})
	}
	if victim < 0 {
		return false
	}
	if f := s.flows[victim]; f.doneAt == clock.Never {
		s.report(now, f, ErrSilent)
	}
	s.remove(victim)
	return true
}

func (s *Server) newFlow(now clock.Time, from netip.AddrPort, kind Checksum) *flow {
	cfg := s.cfg
	cfg.Checksum = kind
	sender, err := NewSender(cfg, s.data)
	if err != nil {
		panic("BUG: rdt: " + err.Error()) // NewServer has already validated everything
	}
	return &flow{Flow: Flow{Peer: from, Began: now}, sender: sender}
}

func (s *Server) remove(i int) {
	s.flows = slices.Delete(s.flows, i, i+1)
	if i < s.turn {
		s.turn--
	}
}

// updateDone records the time at which a flow is done.
func (s *Server) updateDone(now clock.Time, f *flow) {
	switch done := f.sender.Done(); {
	case !done:
		f.doneAt = clock.Never
	case f.doneAt == clock.Never:
		f.doneAt = now
		if f.sender.info.Sent != f.reported { // a repeated request sends nothing new
			s.report(now, f, nil)
		}
	}
}

// report queues the end of a flow for Next.
func (s *Server) report(now clock.Time, f *flow, err error) {
	f.reported = f.sender.info.Sent
	if len(s.ended) == maxServed {
		s.ended = s.ended[1:]
	}
	e := f.describe(now)
	e.Err = err
	s.ended = append(s.ended, e)
}

func (f *flow) describe(now clock.Time) Flow {
	e := f.Flow
	e.Objects, e.Bytes = f.sender.requested()
	e.Sender = f.sender.Info()
	e.Done = f.doneAt != clock.Never
	if e.Done {
		now = f.doneAt
	}
	e.Took = now.Sub(f.Began)
	return e
}

// Next returns the next ended flow: everything requested was acknowledged, or Err says why not.
func (s *Server) Next() (Flow, bool) {
	if len(s.ended) == 0 {
		return Flow{}, false
	}
	e := s.ended[0]
	s.ended = s.ended[1:]
	return e, true
}

// maxUnverified is how many bytes a server sends to an address that has only sent a request,
// because the source address may be forged. A further request adds one packet.
const maxUnverified = 4096

// maySendTo reports whether the server may send more to a flow's receiver. An echo proves the
// receiver's address, because it contains a time that was sent only to this address. Without
// echoes, any acknowledgment must suffice. RFC 9000 §8.1 requires the same of QUIC.
func (s *Server) maySendTo(f *flow) bool {
	i := &f.sender.info
	if s.cfg.Trust || f.sender.echoed || !s.cfg.echoes() && i.Acks > 0 {
		return true
	}
	more := i.Requests - min(1, i.Requests)
	return i.SentBytes < maxUnverified+more*uint64(dataLen+md5.Size+s.cfg.Payload)
}

// Output appends the next packet to b and returns its destination. The flows take turns. It returns
// false if no packet can be sent now.
func (s *Server) Output(now clock.Time, b []byte) (to netip.AddrPort, _ []byte, ok bool) {
	for range s.flows {
		if s.turn >= len(s.flows) {
			s.turn = 0
		}
		f := s.flows[s.turn]
		s.turn++
		if !s.maySendTo(f) {
			continue
		}
		if b, ok = f.sender.Output(now, b); ok {
			return f.Peer, b, true
		}
	}
	return to, b, false
}

// Deadline returns the time for the next call of Advance.
func (s *Server) Deadline() clock.Time {
	due := clock.Never
	for _, f := range s.flows {
		due = clock.Earliest(due, s.due(f))
	}
	return due
}

func (s *Server) due(f *flow) clock.Time {
	if f.doneAt != clock.Never {
		return f.doneAt.Add(s.cfg.Linger)
	}
	return f.sender.Deadline()
}

// Advance processes expired timers. It removes flows whose receivers are silent, and flows that
// have been done for Config.Linger. Until then, a late packet does not start a new flow.
func (s *Server) Advance(now clock.Time) {
	for i, f := range slices.Backward(s.flows) { // removing a flow moves the flows after it
		if !s.due(f).Due(now) {
			continue
		}
		if f.doneAt == clock.Never {
			if f.sender.Advance(now); f.sender.Err() == nil {
				continue
			}
			s.report(now, f, f.sender.Err())
		}
		s.remove(i)
	}
}

// Flows describes the flows in the order of their start.
func (s *Server) Flows(now clock.Time) []Flow {
	list := make([]Flow, 0, len(s.flows))
	for _, f := range s.flows {
		list = append(list, f.describe(now))
	}
	return list
}

// ServerInfo contains the counters that belong to no flow.
type ServerInfo struct {
	Objects int
	Bytes   int64
	Refused uint64 // requests beyond MaxFlows
	Unknown uint64 // other datagrams from unknown peers
}

// Info returns the server's counters.
func (s *Server) Info() ServerInfo {
	i := ServerInfo{Objects: len(s.data) - 1, Refused: s.refused, Unknown: s.unknown}
	for _, d := range s.data[1:] {
		i.Bytes += int64(len(d))
	}
	return i
}

// requested returns the number and size of the requested objects that exist, without the listing.
func (s *Sender) requested() (objects int, bytes int64) {
	for id := range s.schedule.requested {
		if o, ok := s.schedule.object(id); ok && id != ListingStream {
			objects++
			bytes += int64(len(o))
		}
	}
	return objects, bytes
}
