package stack_test

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// packetTo returns a test packet without data.
func packetTo(src, dst netip.Addr, options ...byte) []byte {
	return ip.Header{
		TotalLen: 20 + len(options), TTL: 9, Protocol: ip.ProtoTest, Src: src, Dst: dst,
		Options: options,
	}.Append(nil)
}

// RFC 1122 §3.2.1.3: a host accepts only packets to its own addresses, the link's broadcast
// addresses and its groups. It accepts packets with unknown options (§3.2.1.8).
func TestRFC1122_3_2_1_3_Addresses(t *testing.T) {
	w, _, _, c := line(t)
	from := ip.V4(10, 1, 0, 1)
	tests := []struct {
		name   string
		packet []byte
		ours   bool
	}{
		{"its address", packetTo(from, ip.V4(10, 1, 0, 2)), true},
		{"record route", packetTo(from, ip.V4(10, 1, 0, 2), 7, 7, 4, 0, 0, 0, 0, 0), true},
		{"an unknown option", packetTo(from, ip.V4(10, 1, 0, 2), 0x9e, 4, 1, 2), true},
		{"all on the network", packetTo(from, ip.V4(10, 1, 0, 255)), true},
		{"all on the link", packetTo(from, ip.V4(255, 255, 255, 255)), true},
		{"a neighbor's address", packetTo(from, ip.V4(10, 1, 0, 9)), false},
		{"all on another network", packetTo(from, ip.V4(10, 0, 0, 255)), false},
		{"all hosts, RFC 1112 §7.2", packetTo(from, ip.V4(224, 0, 0, 1)), true},
	}
	for _, tt := range tests {
		before := dropsOf(c.Interfaces().Infos()[0].In)[ip.DropNotForUs.String()]
		input(c, w.now, frame(tt.packet))
		after := dropsOf(c.Interfaces().Infos()[0].In)[ip.DropNotForUs.String()]
		if tt.ours {
			assert.Len(t, c.Events(), 1, tt.name)
			assert.Equal(t, before, after, tt.name)
		} else {
			assert.Empty(t, c.Events(), tt.name)
			assert.Equal(t, before+1, after, tt.name)
		}
	}
}

// RFC 1122 §3.2.2.6: an echo reply's source is the request's destination, even if that is not the
// address of the outgoing interface. A node does not answer an echo request to a broadcast address.
func TestRFC1122_3_2_2_6_Echo(t *testing.T) {
	w, a, b, _ := line(t)
	p := newPinger(t, a)
	require.NoError(t, p.send(w.now, "10.1.0.1", 1, 8, 0))
	w.run(time.Millisecond)
	got := p.take()
	require.Len(t, got, 1)
	assert.Equal(t, icmp.TypeEchoReply, got[0].Type)
	assert.Equal(t, addr("10.1.0.1"), got[0].From)

	received := b.Interfaces().Infos()[0].In.Packets
	require.NoError(t, p.send(w.now, "10.0.0.255", 2, 8, 0))
	w.run(time.Millisecond)
	assert.Equal(t, received+1, b.Interfaces().Infos()[0].In.Packets, "the request arrived")
	assert.Empty(t, p.take())
}

// RFC 1812 §5.3.7: a router does not forward packets with a martian source or destination address,
// and sends no error.
func TestRFC1812_5_3_7_Martians(t *testing.T) {
	w, a, b, c := line(t)
	host, far := ip.V4(10, 0, 0, 1), ip.V4(10, 1, 0, 2)
	input(b, w.now, frame(packetTo(host, far)))
	w.run(time.Millisecond)
	require.Len(t, c.Events(), 1, "the packet comes from this link")
	martians := [][2]netip.Addr{
		{host, ip.V4(127, 0, 0, 1)},
		{host, ip.V4(0, 0, 0, 1)},
		{host, ip.V4(240, 0, 0, 1)},
		{ip.V4(127, 0, 0, 1), far},
		{ip.V4(224, 0, 0, 9), far},
		{ip.V4(255, 255, 255, 255), far},
	}
	for i, m := range martians {
		input(b, w.now, frame(packetTo(m[0], m[1])))
		w.run(time.Millisecond)
		drops := dropsOf(b.Interfaces().Infos()[0].In)
		assert.Equal(t, uint64(i+1), drops[ip.DropMartian.String()], "%v to %v", m[0], m[1])
	}
	assert.Empty(t, a.Events())
	assert.Empty(t, c.Events())
}

// Segments have a TTL that is large enough for any path (RFC 1122 §3.2.1.7, RFC 9293 §3.9.2) unless
// the user sets a smaller one. They have DF set, so the identification has no meaning (RFC 6864
// §4.1).
func TestHeadersOfSegments(t *testing.T) {
	w, a, _, c := line(t)
	s := newStream(w, a, c, addrPort(addr("10.1.0.2"), 80), 3000)
	ttls := map[byte]int{}
	w.mangle = func(p []byte) {
		if p[9] != ip.ProtoTCP || netip.AddrFrom4([4]byte(p[12:16])) != ip.V4(10, 0, 0, 1) {
			return
		}
		ttls[p[8]]++
		assert.Equal(t, uint16(0x4000), binary.BigEndian.Uint16(p[6:]), "DF, and not a fragment")
		assert.Zero(t, binary.BigEndian.Uint16(p[4:]))
	}
	s.run(time.Second)
	require.NotZero(t, ttls[64])
	assert.Equal(t, map[byte]int{64: ttls[64], 63: ttls[64]}, ttls,
		"the TTL before and after the router")

	o := s.client.Sockopts()
	o.TTL = 1
	require.NoError(t, s.client.SetSockopts(w.now, o))
	clear(ttls)
	s.size += 1000
	s.pump()
	w.run(100 * time.Millisecond)
	assert.NotZero(t, ttls[1])
	assert.Zero(t, ttls[0])
	assert.Equal(t, 3000, s.got, "the router forwarded no data")
}
