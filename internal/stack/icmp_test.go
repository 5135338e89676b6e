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
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

var hostA, routerA, routerC, hostC = ip.V4(10, 0, 0, 1), ip.V4(10, 0, 0, 2),
	ip.V4(10, 1, 0, 1), ip.V4(10, 1, 0, 2)

// packet makes a whole IP packet.
func packet(h ip.Header, payload []byte) []byte {
	if h.TTL == 0 {
		h.TTL = 9
	}
	h.TotalLen = h.Size() + len(payload)
	return append(h.Append(nil), payload...)
}

// ask passes a packet to node k of a world, and returns the packets that the node sends at once.
func ask(w *world, k, iface int, b []byte) (sent [][]byte) {
	f := frame(b)
	f.Iface = iface
	input(w.stacks[k], w.now, f)
	return sentAtOnce(w, k)
}

// sentAtOnce returns the packets that node k of a world sends at once.
func sentAtOnce(w *world, k int) (sent [][]byte) {
	batch := w.batch
	for {
		batch.Reset()
		more := w.stacks[k].Output(w.now, []int{99, 99, 99, 99}, batch)
		for _, tr := range batch.Trains() {
			for n := range tr.Count {
				var p []byte
				for _, piece := range tr.Packet(n) {
					p = append(p, piece...)
				}
				sent = append(sent, p)
			}
		}
		if !more {
			batch.Reset()
			return sent
		}
	}
}

// answer checks that a node sends exactly one ICMP message and returns it with its IP header.
func answer(t *testing.T, sent [][]byte) (ip.Header, icmp.Message) {
	t.Helper()
	require.Len(t, sent, 1)
	h, payload, drop := ip.ParseHeader(sent[0])
	require.Equal(t, ip.DropNone, drop)
	require.Equal(t, ip.ProtoICMP, h.Protocol)
	m, ok := icmp.Parse(payload, h.Src, h.Dst)
	require.True(t, ok)
	return h, m
}

func echoTo(dst netip.Addr, h ip.Header, data []byte) []byte {
	h.Protocol, h.Src, h.Dst = ip.ProtoICMP, hostA, dst
	m := icmp.Message{Type: icmp.TypeEcho, Rest: icmp.EchoRest(7, 9), Body: data}
	return packet(h, m.Append(nil, h.Src, h.Dst))
}

func datagramTo(src, dst netip.Addr, h ip.Header, data []byte) []byte {
	h.Protocol, h.Src, h.Dst = ip.ProtoUDP, src, dst
	return packet(h, udp.Header{SrcPort: 9, DstPort: 33434}.Append(nil, src, dst, data))
}

// RFC 1122 §3.2.2.6: the reply has the request's data, and its source is the request's destination.
// RFC 1812 §4.3.2.5: its type of service is the request's.
func TestEchoReplies(t *testing.T) {
	w, _, b, _ := line(t)
	data := []byte("arbitrary data")
	for _, dst := range []netip.Addr{routerA, routerC} {
		h, m := answer(t, ask(w, 1, 0, echoTo(dst, ip.Header{TOS: 0x28, TTL: 1}, data)))
		assert.Equal(t, dst, h.Src)
		assert.Equal(t, hostA, h.Dst)
		assert.Equal(t, uint8(64), h.TTL)
		assert.Equal(t, uint8(0x28), h.TOS)
		assert.Equal(t, icmp.Message{Rest: icmp.EchoRest(7, 9), Body: data}, m)
	}
	for _, all := range []netip.Addr{ip.V4(10, 0, 0, 255), ip.V4(255, 255, 255, 255), ip.V4(224, 0, 0, 1)} {
		assert.Empty(t, ask(w, 1, 0, echoTo(all, ip.Header{}, data)), "RFC 1122 §3.2.2.6: %v", all)
		require.NoError(t, b.SetKnobs(stack.Knobs{ICMP: stack.ICMPKnobs{EchoBroadcast: true}}))
		h, _ := answer(t, ask(w, 1, 0, echoTo(all, ip.Header{}, data)))
		assert.Equal(t, routerA, h.Src)
		require.NoError(t, b.SetKnobs(stack.Knobs{}))
	}
	require.NoError(t, b.SetKnobs(stack.Knobs{ICMP: stack.ICMPKnobs{NoEcho: true}}))
	assert.Empty(t, ask(w, 1, 0, echoTo(routerA, ip.Header{}, data)))
	assert.Empty(t, drops(b, 0))
}

// RFC 1122 §3.2.2.6: the reply has the request's record route or timestamp option. The host enters
// itself as the request's last hop and, if there is space, as the reply's first.
func TestEchoRepliesRecordTheRoute(t *testing.T) {
	w, _, _, _ := line(t)
	h, _ := answer(t, ask(w, 1, 0, echoTo(routerC, ip.Header{
		Options: []byte{1, 7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0},
	}, nil)))
	assert.Equal(t, []byte{7, 11, 12, 10, 1, 0, 1, 10, 1, 0, 1, 0}, h.Options)
	w.now += 5_000_000
	h, _ = answer(t, ask(w, 1, 0, echoTo(routerC, ip.Header{
		Options: []byte{148, 4, 0, 0, 68, 8, 5, 0, 0, 0, 0, 0},
	}, nil)))
	assert.Equal(t, []byte{68, 8, 9, 0x10, 0, 0, 0, 5}, h.Options,
		"the router alert is not returned")
}

// RFC 1122 §3.2.2.8: a timestamp reply has the milliseconds since midnight UT.
func TestTimestampReplies(t *testing.T) {
	w := newWorld(t)
	s := w.add(stack.Config{
		Interfaces: []stack.Interface{face("if0", "10.0.0.2/24")},
		TimeOfDay:  23*time.Hour + 59*time.Minute + 59*time.Second,
	})
	query := icmp.Message{
		Type: icmp.TypeTimestamp, Rest: icmp.EchoRest(7, 9),
		Body: []byte{0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9},
	}
	h := ip.Header{Protocol: ip.ProtoICMP, Src: hostA, Dst: routerA}
	for now, millis := range map[time.Duration]uint32{1: 86_399_000, 2 * time.Second: 1000} {
		w.now = 0
		w.now = w.now.Add(now)
		_, m := answer(t, ask(w, 0, 0, packet(h, query.Append(nil, h.Src, h.Dst))))
		want := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 1}, millis)
		want = binary.BigEndian.AppendUint32(want, millis)
		assert.Equal(t, icmp.Message{Type: icmp.TypeTimestampReply, Rest: query.Rest, Body: want}, m)
	}
	query.Body = query.Body[:11]
	assert.Empty(t, ask(w, 0, 0, packet(h, query.Append(nil, h.Src, h.Dst))))
	assert.Equal(t, map[string]uint64{"bad icmp message": 1}, drops(s, 0))
	query.Body = make([]byte, 12)
	require.NoError(t, s.SetKnobs(stack.Knobs{ICMP: stack.ICMPKnobs{NoTimestamp: true}}))
	assert.Empty(t, ask(w, 0, 0, packet(h, query.Append(nil, h.Src, h.Dst))))
}

// RFC 6918 §2, RFC 6633 §3, RFC 1812 §5.2.7.2, RFC 1122 §3.2.2.2: a node does not answer obsolete
// messages and redirects.
func TestIgnoredICMPMessages(t *testing.T) {
	w, _, b, _ := line(t)
	h := ip.Header{Protocol: ip.ProtoICMP, Src: hostA, Dst: routerA}
	for _, typ := range []icmp.Type{
		icmp.TypeSourceQuench, icmp.TypeRedirect, icmp.TypeRouterAdvert, icmp.TypeRouterSolicit,
		icmp.TypeTimestampReply, icmp.TypeInfoRequest, icmp.TypeInfoReply, icmp.TypeMaskRequest,
		icmp.TypeMaskReply, 1, 2, 6, 7, 30, 40, 255,
	} {
		m := icmp.Message{Type: typ, Body: make([]byte, 36)}
		assert.Empty(t, ask(w, 1, 0, packet(h, m.Append(nil, h.Src, h.Dst))), typ)
	}
	assert.Empty(t, drops(b, 0))
}

// RFC 1812 §5.2.7: each error quotes the packet as it arrived, and has at most 576 bytes
// (§4.3.2.3). The error has precedence 6 (§4.3.2.5) and TTL 64. Its source is the packet's
// destination or the address of the interface towards the sender (§4.3.2.4).
func TestICMPErrorsAndQuotes(t *testing.T) {
	w, _, b, _ := line(t)
	protocol := func(dst netip.Addr) []byte {
		return packet(ip.Header{Protocol: 99, Src: hostA, Dst: dst}, make([]byte, 900))
	}
	big := append([]byte(nil), make([]byte, 1300)...)
	tests := []struct {
		name   string
		packet []byte
		typ    icmp.Type
		code   uint8
		rest   [4]byte
		src    netip.Addr
	}{
		{"RFC 1122 §3.2.2.1: no such protocol", protocol(routerA), 3, 2, [4]byte{}, routerA},
		{"at the other interface", protocol(routerC), 3, 2, [4]byte{}, routerC},
		{
			"no such port", datagramTo(hostA, routerC, ip.Header{TOS: 0xff}, big), 3, 3,
			[4]byte{},
			routerC,
		},
		{"no route", datagramTo(hostA, ip.V4(9, 9, 9, 9), ip.Header{}, nil), 3, 0, [4]byte{}, routerA},
		{"ttl", datagramTo(hostA, hostC, ip.Header{TTL: 1}, big), 11, 0, [4]byte{}, routerA},
		{"ttl 0", datagramTo(hostA, hostC, ip.Header{TTL: 0xff}, nil), 11, 0, [4]byte{}, routerA},
		{
			"frag needed", datagramTo(hostA, hostC, ip.Header{DF: true}, append(big, big...)), 3, 4,
			[4]byte{2: 1400 >> 8, 3: 1400 & 0xff},
			routerA,
		},
		{
			"a bad option", datagramTo(hostA, hostC, ip.Header{Options: []byte{1, 7, 3, 3}}, nil),
			12, 0,
			[4]byte{23},
			routerA,
		},
		{
			"a bad option, for this node",
			datagramTo(hostA, routerC, ip.Header{Options: []byte{1, 1, 1, 7}}, nil), 12, 0,
			[4]byte{23},
			routerC,
		},
		{
			"a source route",
			datagramTo(hostA, hostC, ip.Header{Options: []byte{131, 7, 4, 1, 2, 3, 4, 0}}, big),
			3, 5,
			[4]byte{},
			routerA,
		},
	}
	for _, tt := range tests {
		p := tt.packet
		if p[8] == 0xff {
			h, payload, _ := ip.ParseHeader(p)
			h.TTL = 0
			p = append(h.Append(nil), payload...)
		}
		original := append([]byte(nil), p...)
		h, m := answer(t, ask(w, 1, 0, p))
		assert.Equal(t, tt.typ, m.Type, tt.name)
		assert.Equal(t, tt.code, m.Code, tt.name)
		assert.Equal(t, tt.rest, m.Rest, tt.name)
		assert.Equal(t, tt.src, h.Src, tt.name)
		assert.Equal(t, hostA, h.Dst, tt.name)
		assert.Equal(t, uint8(64), h.TTL, tt.name)
		assert.Equal(t, original[1]&0x1c|0xc0, h.TOS, tt.name)
		assert.Equal(t, original[:min(len(original), 548)], m.Body, tt.name)
		assert.LessOrEqual(t, h.TotalLen, 576, tt.name)

		require.NoError(t, b.SetKnobs(stack.Knobs{ICMP: stack.ICMPKnobs{NoErrors: true}}))
		assert.Empty(t, ask(w, 1, 0, original), "%s with errors disabled", tt.name)
		require.NoError(t, b.SetKnobs(stack.Knobs{}))
	}
	b.SetUp(w.now, 1, false)
	_, m := answer(t, ask(w, 1, 0, datagramTo(hostA, hostC, ip.Header{}, nil)))
	assert.Equal(t, icmp.CodeNet, m.Code, "the link is down, so the route is gone")
}

// RFC 1122 §3.2.2: a node sends no ICMP error about an ICMP error, a later fragment, a broadcast, a
// multicast, or a packet whose source is not a host.
func TestPacketsWithoutICMPErrors(t *testing.T) {
	w, _, _, _ := line(t)
	unreachable := icmp.Message{Type: icmp.TypeUnreachable, Body: make([]byte, 28)}
	for name, p := range map[string][]byte{
		"an error": packet(
			ip.Header{Protocol: ip.ProtoICMP, Src: hostA, Dst: ip.V4(9, 9, 9, 9)},
			unreachable.Append(nil, routerA, hostA)),
		"a later fragment":  datagramTo(hostA, ip.V4(9, 9, 9, 9), ip.Header{FragOff: 8}, nil),
		"all on the link":   datagramTo(hostA, ip.V4(10, 0, 0, 255), ip.Header{}, nil),
		"4.2BSD broadcast":  datagramTo(hostA, ip.V4(10, 0, 0, 0), ip.Header{TTL: 1}, nil),
		"the other link":    datagramTo(hostA, ip.V4(10, 1, 0, 255), ip.Header{}, nil),
		"limited broadcast": datagramTo(hostA, ip.V4(255, 255, 255, 255), ip.Header{}, nil),
		"all hosts":         datagramTo(hostA, ip.V4(224, 0, 0, 1), ip.Header{}, nil),
		"a group":           datagramTo(hostA, ip.V4(224, 0, 0, 9), ip.Header{}, nil),
		"from zero":         datagramTo(netip.IPv4Unspecified(), routerA, ip.Header{}, nil),
		"from this network": datagramTo(ip.V4(0, 0, 0, 9), routerA, ip.Header{}, nil),
		"from loopback":     datagramTo(ip.V4(127, 0, 0, 1), routerA, ip.Header{}, nil),
		"from a group":      datagramTo(ip.V4(224, 0, 0, 9), routerA, ip.Header{}, nil),
		"from class E":      datagramTo(ip.V4(250, 0, 0, 9), routerA, ip.Header{}, nil),
		"from all":          datagramTo(ip.V4(255, 255, 255, 255), routerA, ip.Header{}, nil),
		"from the link":     datagramTo(ip.V4(10, 0, 0, 255), routerA, ip.Header{}, nil),
		"from the other":    datagramTo(ip.V4(10, 1, 0, 255), routerA, ip.Header{}, nil),
		"from ourselves":    datagramTo(routerC, routerA, ip.Header{}, nil),
	} {
		assert.Empty(t, ask(w, 1, 0, p), name)
	}
}

// RFC 1812 §4.3.2.8: the rate of errors is limited, and suppressed errors are counted. Echo replies
// are not limited.
func TestICMPErrorRateLimit(t *testing.T) {
	w, _, b, _ := line(t)
	require.NoError(t, b.SetKnobs(stack.Knobs{ICMP: stack.ICMPKnobs{
		Errors: icmp.Limit{Rate: 10, Burst: 3},
	}}))
	assert.Equal(t, icmp.Limit{Rate: 10, Burst: 3}, b.Knobs().ICMP.Errors)
	sent := 0
	for range 100 {
		sent += len(ask(w, 1, 0, datagramTo(hostA, routerA, ip.Header{}, nil)))
		w.now = w.now.Add(10 * time.Millisecond)
	}
	assert.Equal(t, 3+9, sent, "a burst, then ten per second")
	assert.Equal(t, map[string]uint64{"no udp socket": 100, "icmp rate limit": 88}, drops(b, 0))
	for range 100 {
		assert.Len(t, ask(w, 1, 0, echoTo(routerA, ip.Header{}, nil)), 1)
	}
	for _, no := range []icmp.Limit{{Burst: -1}, {Rate: 2_000_000}} {
		err := b.SetKnobs(stack.Knobs{ICMP: stack.ICMPKnobs{Errors: no}})
		require.ErrorIs(t, err, stack.ErrKnob)
	}
}

// A node ignores an ICMP error about a datagram that it did not send.
func TestICMPErrorAboutAnotherNodesPacket(t *testing.T) {
	w, a, _, _ := line(t)
	u := bindUDP(t, a, "0.0.0.0:9")
	require.NoError(t, u.Connect(addrPort(addr("10.1.0.2"), 33434)))
	for src, err := range map[netip.Addr]error{ip.V4(10, 7, 0, 1): nil, hostA: udp.ErrRefused} {
		about := datagramTo(src, hostC, ip.Header{}, nil)
		m := icmp.Error(nil, hostC, icmp.ReportError{Type: icmp.TypeUnreachable, Code: icmp.CodePort}, 0, about, 576)
		assert.Empty(t, ask(w, 0, 0, packet(
			ip.Header{Protocol: ip.ProtoICMP, Src: hostC, Dst: hostA}, m)))
		assert.ErrorIs(t, u.TakeError(), err)
	}
}
