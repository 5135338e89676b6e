package stack_test

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// pinger sends echo requests through a raw socket and keeps the answers.
type pinger struct {
	stack *stack.Stack
	got   []echo
}

// echo is the answer to a request: a reply, or an error about the request.
type echo struct {
	From  netip.Addr
	Seq   uint16
	Bytes int // length of the ICMP message
	Type  icmp.Type
	Code  uint8
}

func newPinger(t *testing.T, s *stack.Stack) *pinger {
	t.Helper()
	p := &pinger{stack: s}
	require.NoError(t, s.Raws().Open(&stack.Raw{Protocol: ip.ProtoICMP, Receive: p.hear}))
	return p
}

func (p *pinger) send(now clock.Time, dst string, seq uint16, size, ttl int) error {
	m := icmp.Message{Type: icmp.TypeEcho, Rest: icmp.EchoRest(1, seq), Body: make([]byte, size)}
	return p.stack.Raws().Send(now, &stack.RawPacket{
		Protocol: ip.ProtoICMP, Dst: addr(dst), TTL: uint8(ttl), Payload: m.Append(nil, netip.Addr{}, netip.Addr{}),
	})
}

func (p *pinger) hear(from netip.Addr, payload []byte) {
	m, ok := icmp.Parse(payload, from, from)
	if !ok || m.Type == icmp.TypeEcho {
		return
	}
	e := echo{From: from, Bytes: len(payload), Type: m.Type, Code: m.Code}
	if m.Type == icmp.TypeEchoReply {
		_, e.Seq = m.Echo()
	} else if _, rest, ok := icmp.Quoted(m.Body); ok {
		e.Seq = binary.BigEndian.Uint16(rest[6:])
	}
	p.got = append(p.got, e)
}

// take returns the answers since the last call and forgets them.
func (p *pinger) take() []echo {
	got := p.got
	p.got = nil
	return got
}
