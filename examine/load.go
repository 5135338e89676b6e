package examine

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/tidepool-net/tidepool/internal/ip"
)

// peerActions are the actions of the peers in a step "peers": open a connection and reset it; open
// a connection, close the sending side and reset it; or only send a SYN.
var peerActions = []string{"reset", "close", "vanish"}

// peers opens connections to the subject, one after the other.
func (x *execution) peers(s *step) error {
	list := []*pattern{
		{kind: segmentKind, flags: flagSYN},
		{kind: segmentKind, flags: flagACK},
		{kind: segmentKind, flags: flagFIN | flagACK},
		{kind: segmentKind, flags: flagRST | flagACK},
	}
	n := s.count.value(x.symbol)
	for i := range n {
		x.reset()
		for j, w := range list {
			if j == 2 && s.words[0] != "close" {
				continue
			}
			p := x.build(w)
			x.seal(w, p)
			if err := x.transmit(p); err != nil {
				return err
			}
			if s.words[0] == "vanish" {
				break
			}
			if j%2 == 1 {
				continue
			}
			want := &pattern{kind: segmentKind, flags: flagACK}
			if j == 0 {
				want.flags |= flagSYN
			}
			got, err := x.await(want, x.patience(span{}))
			if err != nil {
				return err
			}
			if got == nil {
				x.note(EventExpected, letters(want.flags))
				return failed("connection %d of %d: the stack did not send `%s`", i+1, n,
					letters(want.flags))
			}
		}
	}
	x.reset()
	return nil
}

// most checks that at most a number of matching packets arrive within a time.
func (x *execution) most(s *step) error {
	until := x.run.Now().Add(x.duration(s.span))
	limit := s.count.value(x.symbol)
	x.pending = x.pending[:0]
	for n := int64(0); ; {
		p, err := x.receive(until)
		if p == nil || err != nil {
			return err
		}
		if !x.usable(s.pattern, p) || !x.matches(s.pattern, p) {
			continue
		}
		if n++; n > limit {
			x.ladder[len(x.ladder)-1].Kind = EventUnwanted
			return failed("the stack sent more than %d packets `%s`", limit, s.pattern.text)
		}
	}
}

// garbage sends random bytes, IP packets of random protocols with random content, and segments with
// random headers to other ports, of all lengths. The check's name is the seed.
func (x *execution) garbage(s *step) error {
	const longest, burst = 1400, 25 // more packets would fill the receive buffer of a UDP socket
	random := rand.New(rand.NewPCG(uint64(x.conn.iss), 1))
	l := x.setup.Links[0]
	for n := range s.count.value(x.symbol) {
		if n%burst == burst-1 {
			if err := x.wait(&step{span: span{0.5, "rtt"}}); err != nil {
				return err
			}
		}
		b := make([]byte, random.IntN(longest))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		if kind := random.IntN(3); kind > 0 {
			h := ip.Header{
				Src: l.Peer, Dst: l.Addr.Addr(), TTL: defaultTTL, Protocol: byte(random.Uint32()),
				TotalLen: ip.HeaderLen + len(b),
			}
			if kind == 2 {
				h.Protocol = ip.ProtoTCP
			}
			if kind == 2 && len(b) >= tcpHeaderLen {
				const closedPort = 9
				binary.BigEndian.PutUint16(b[2:], closedPort)
			}
			b = append(h.Append(nil), b...)
		}
		x.note(EventSent, fmt.Sprintf("garbage of %d bytes", len(b))).Raw = b
		if err := x.run.Send(0, b); err != nil {
			return &stop{Void, "send: " + err.Error()}
		}
	}
	x.pending, x.packets = x.pending[:0], 0
	return nil
}
