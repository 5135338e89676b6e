package rdt

import (
	"crypto/md5"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// MaxFlows is the maximum number of receivers of a server. A new one replaces the one that has been
// done longest, or else the oldest that has never acknowledged anything. Otherwise its request is
// refused.
const MaxFlows = 64

// maxServed is the maximum number of finished flows that wait for Next.
const maxServed = 256

// Object is an object of a server.
type Object struct {
	Entry
	// Data must not change while the server exists.
	Data []byte
}

// Server serves named objects at one port, with a Sender for each receiver. Each receiver chooses
// the checksum of its flow. One caller owns it.
type Server struct {
	cfg     Config
	data    [][]byte // by stream; the listing is at ListingStream
	asking  [CRC32C + 1]codec
	flows   []*flow // at most MaxFlows
	turn    int     // the flow that sends next
	ended   []Flow  // at most maxServed
	refused uint64
	strange uint64
}

// flow is a server's state of one receiver.
type flow struct {
	Flow
	sender *Sender
	doneAt clock.Time // Never: not done
	told   uint64     // packets sent at the last report
}

// Flow describes the flow to one receiver.
type Flow struct {
	Peer netip.AddrPort
	// Objects and Bytes are the requested objects that exist, without the listing.
	Objects int
	Bytes   int64
	Began   clock.Time
	Took    time.Duration // until everything was acknowledged, or the failure, or now
	Done    bool          // everything requested is acknowledged
	Err     error         // ErrSilent
	Sender  SenderInfo
}

// NewServer returns a server of objects. cfg is that of its senders, except for the checksum.
// Errors: ErrConfig; ErrObject if there are too many, a name is invalid or a duplicate, a size is
// wrong, or the listing is longer than MaxListing.
func NewServer(cfg Config, objects []Object) (*Server, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if len(objects) > MaxEntries {
		return nil, fmt.Errorf("%w: too many for one listing: %d objects", ErrObject, len(objects))
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
	for kind := range s.asking {
		cfg.Checksum = Checksum(kind)
		s.asking[kind] = newCodec(&cfg)
	}
	return s, nil
}

// Input processes a datagram from a receiver. Only a request from an unknown peer starts a flow.
func (s *Server) Input(now clock.Time, from netip.AddrPort, b []byte) {
	i := slices.IndexFunc(s.flows, func(f *flow) bool { return f.Peer == from })
	if i < 0 {
		kind, ok := s.asks(b)
		if !ok {
			s.strange++
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
	s.look(now, f)
}

// asks reports whether b is a valid request, and its checksum.
func (s *Server) asks(b []byte) (Checksum, bool) {
	for kind := range s.asking {
		p, drop := s.asking[kind].parse(b, false)
		if drop == dropNone && p.kind == kindRequest && validRequest(p.payload) {
			return Checksum(kind), true
		}
	}
	return 0, false
}

// room makes room for another flow if possible, and reports whether there is room.
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
	if victim < 0 { // sorted by start
		victim = slices.IndexFunc(s.flows, func(f *flow) bool {
			return f.sender.info.Acks == 0 && now.Sub(f.Began) >= s.cfg.Timeout
		})
	}
	if victim < 0 {
		return false
	}
	if f := s.flows[victim]; f.doneAt == clock.Never {
		s.tell(now, f, ErrSilent)
	}
	s.remove(victim)
	return true
}

func (s *Server) newFlow(now clock.Time, from netip.AddrPort, kind Checksum) *flow {
	cfg := s.cfg
	cfg.Checksum = kind
	sender, err := NewSender(cfg, s.data)
	if err != nil {
		panic("BUG: rdt: " + err.Error()) // NewServer has validated everything
	}
	return &flow{Flow: Flow{Peer: from, Began: now}, sender: sender}
}

func (s *Server) remove(i int) {
	s.flows = slices.Delete(s.flows, i, i+1)
	if i < s.turn {
		s.turn--
	}
}

// look records whether a flow is done.
func (s *Server) look(now clock.Time, f *flow) {
	switch done := f.sender.Done(); {
	case !done:
		f.doneAt = clock.Never
	case f.doneAt == clock.Never:
		f.doneAt = now
		if f.sender.info.Sent != f.told { // not for a repeated request
			s.tell(now, f, nil)
		}
	}
}

// tell queues a flow's end for Next.
func (s *Server) tell(now clock.Time, f *flow, err error) {
	f.told = f.sender.info.Sent
	if len(s.ended) == maxServed {
		s.ended = s.ended[1:]
	}
	e := f.describe(now)
	e.Err = err
	s.ended = append(s.ended, e)
}

func (f *flow) describe(now clock.Time) Flow {
	e := f.Flow
	e.Objects, e.Bytes = f.sender.asked()
	e.Sender = f.sender.Info()
	e.Done = f.doneAt != clock.Never
	if e.Done {
		now = f.doneAt
	}
	e.Took = now.Sub(f.Began)
	return e
}

// Next returns the next finished flow: everything that was requested is acknowledged, or Err says
// why not.
func (s *Server) Next() (Flow, bool) {
	if len(s.ended) == 0 {
		return Flow{}, false
	}
	e := s.ended[0]
	s.ended = s.ended[1:]
	return e, true
}

// unproved is how many bytes a server sends to an address that has only sent a request, because its
// source may be forged. A further request adds one packet.
const unproved = 4096

// mayHear reports whether more may be sent to a flow's receiver. An echo proves the receiver's
// address, because it contains a time that only a packet to that address has. Without echoes, any
// acknowledgment must suffice. RFC 9000 §8.1 requires the same of QUIC.
func (s *Server) mayHear(f *flow) bool {
	i := &f.sender.info
	if s.cfg.Trust || f.sender.echoed || !s.cfg.echoes() && i.Acks > 0 {
		return true
	}
	more := i.Requests - min(1, i.Requests)
	return i.SentBytes < unproved+more*uint64(dataLen+md5.Size+s.cfg.Payload)
}

// Output appends the next packet to b, and returns its destination. The flows send in turn. False:
// nothing to send now.
func (s *Server) Output(now clock.Time, b []byte) (to netip.AddrPort, _ []byte, ok bool) {
	for range s.flows {
		if s.turn >= len(s.flows) {
			s.turn = 0
		}
		f := s.flows[s.turn]
		s.turn++
		if !s.mayHear(f) {
			continue
		}
		if b, ok = f.sender.Output(now, b); ok {
			return f.Peer, b, true
		}
	}
	return to, b, false
}

// Deadline returns when to call Advance next.
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

// Advance processes what is due, and removes flows that have been done for Config.Linger, in which
// a late packet does not start a new flow, or whose receivers are silent.
func (s *Server) Advance(now clock.Time) {
	for i, f := range slices.Backward(s.flows) { // removing one moves those after it
		if !s.due(f).Due(now) {
			continue
		}
		if f.doneAt == clock.Never {
			if f.sender.Advance(now); f.sender.Err() == nil {
				continue
			}
			s.tell(now, f, f.sender.Err())
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

// ServerInfo is the counters that belong to no flow.
type ServerInfo struct {
	Objects int
	Bytes   int64
	Refused uint64 // requests beyond MaxFlows
	Strange uint64 // other datagrams from unknown peers
}

// Info returns the server's counters.
func (s *Server) Info() ServerInfo {
	i := ServerInfo{Objects: len(s.data) - 1, Refused: s.refused, Strange: s.strange}
	for _, d := range s.data[1:] {
		i.Bytes += int64(len(d))
	}
	return i
}

// asked returns the number and bytes of the requested objects that exist, without the listing.
func (s *Sender) asked() (objects int, bytes int64) {
	for id := range s.schedule.asked {
		if o, ok := s.schedule.object(id); ok && id != ListingStream {
			objects++
			bytes += int64(len(o))
		}
	}
	return objects, bytes
}
