package stack_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// meanings gives the effect of each ICMP error: whether it aborts a TCP connection that is not
// established (RFC 1122 §4.2.3.9), and whether a call of a connected UDP socket returns an error,
// as on Linux.
var meanings = []struct {
	typ             icmp.Type
	code            uint8
	refuses, passed bool
}{
	{3, 0, false, false},
	{3, 1, false, false},
	{3, 2, true, true},
	{3, 3, true, true},
	{3, 5, false, false},
	{3, 6, false, true},
	{3, 7, false, true},
	{3, 8, false, true},
	{3, 9, false, true},
	{3, 10, false, true},
	{3, 11, false, false},
	{3, 12, false, false},
	{3, 13, false, true},
	{3, 14, false, true},
	{3, 15, false, true},
	{3, 16, false, false},
	{11, 0, false, false},
	{11, 1, false, false},
	{12, 0, false, true},
	{12, 1, false, true},
	{icmp.TypeUnreachable6, 0, false, false},
	{icmp.TypeUnreachable6, 1, false, true},
	{icmp.TypeUnreachable6, 2, false, false},
	{icmp.TypeUnreachable6, 3, false, false},
	{icmp.TypeUnreachable6, 4, true, true},
	{icmp.TypeUnreachable6, 5, false, true},
	{icmp.TypeUnreachable6, 6, false, true},
	{icmp.TypeUnreachable6, 7, false, false},
	{icmp.TypeTimeExceeded6, 0, false, false},
	{icmp.TypeTimeExceeded6, 1, false, false},
	{icmp.TypeParameterProblem6, 0, false, true},
	{icmp.TypeParameterProblem6, 1, false, true},
	{icmp.TypeParameterProblem6, 2, false, true},
}

// path contains the addresses of a test: near is node 0, router is its neighbor, and far is a node
// that does not exist.
type path struct {
	near, router netip.Addr
	far          netip.AddrPort
	icmp         uint8
	header       int // length of an IP header
}

var (
	path4 = path{hostA, routerA, netip.MustParseAddrPort("10.1.0.2:80"), ip.ProtoICMP, 20}
	path6 = path{
		addr("2001:db8::1"), addr("2001:db8::2"), netip.MustParseAddrPort("[2001:db8:1::2]:80"),
		ip.ProtoICMPv6, 40,
	}
)

// pathOf returns the path that has the family of an error.
func pathOf(typ icmp.Type) path {
	if typ.Is6() {
		return path6
	}
	return path4
}

// tell passes node 0 an ICMP error about one of its packets, and returns the packets that the node
// sends.
func (p path) tell(w *world, r icmp.ReportError, about []byte) [][]byte {
	m := icmp.Error(nil, p.router, r, 0, about, 576)
	return ask(w, 0, 0, packet(ip.Header{Protocol: p.icmp, Src: p.router, Dst: p.near}, m))
}

// segment is a packet from far to node 0.
func (p path) segment(flags tcp.Flags, port uint16, seq, ack uint32) []byte {
	b := make([]byte, tcp.HeaderSize)
	h := tcp.Header{Seq: seq, Ack: ack, Flags: flags, Window: 9000}
	h.Put(b, p.far.Port(), port)
	sum := checksum.PseudoHeader(p.far.Addr(), p.near, ip.ProtoTCP, len(b))
	binary.BigEndian.PutUint16(b[16:], ^checksum.Fold(checksum.Sum(b, sum)))
	return packet(ip.Header{Protocol: ip.ProtoTCP, Src: p.far.Addr(), Dst: p.near}, b)
}

// seq is the sequence number of a segment's packet.
func (p path) seq(packet []byte) uint32 { return binary.BigEndian.Uint32(packet[p.header+4:]) }

// RFC 1122 §4.2.3.9, RFC 9293 §3.9.2.2: codes 2 and 3, and code 4 of ICMPv6, are hard errors. They
// end a connection that is being opened; its error is ErrRefused. All other errors are soft. RFC
// 5927 §5.2: to a synchronized connection all errors are soft. A later timeout reports the soft
// error as its reason.
func TestRFC1122_4_2_3_9_ICMPErrorsAndTCP(t *testing.T) {
	for _, m := range meanings {
		report := icmp.ReportError{Type: m.typ, Code: m.code}
		t.Run(report.Error(), func(t *testing.T) {
			for _, state := range []tcp.State{
				tcp.StateSynSent, tcp.StateSynReceived, tcp.StateEstablished, tcp.StateFinWait1,
			} {
				p := pathOf(m.typ)
				w, c, about := p.connecting(t, state)
				p.tell(w, report, about)
				if m.refuses && (state == tcp.StateSynSent || state == tcp.StateSynReceived) {
					assert.Equal(t, tcp.StateClosed, c.State(), state)
					require.ErrorIs(t, c.Err(), tcp.ErrRefused)
					require.ErrorIs(t, c.Err(), report)
					continue
				}
				require.Equal(t, state, c.State())
				require.NoError(t, c.Err())
				w.run(time.Hour)
				assert.Equal(t, tcp.StateClosed, c.State(), state)
				require.ErrorIs(t, c.Err(), tcp.ErrTimeout)
				require.ErrorIs(t, c.Err(), report)
			}
		})
	}
}

// RFC 5927 §4.1: a connection ignores an error about a segment that is not in flight.
func TestRFC5927_4_1_ErrorsAboutOtherSegments(t *testing.T) {
	for _, m := range meanings {
		p, report := pathOf(m.typ), icmp.ReportError{Type: m.typ, Code: m.code}
		w, c, about := p.connecting(t, tcp.StateSynSent)
		about[p.header+4]++ // changes the sequence number
		p.tell(w, report, about)
		require.Equal(t, tcp.StateSynSent, c.State())
		w.run(time.Hour)
		require.ErrorIs(t, c.Err(), tcp.ErrTimeout)
		assert.NotErrorIs(t, c.Err(), report)
	}
}

// A soft error is no longer the reason for a timeout once data has arrived.
func TestSoftErrorIsClearedByData(t *testing.T) {
	p, report := path4, icmp.ReportError{Type: icmp.TypeUnreachable, Code: icmp.CodeHost}
	w, c, about := p.connecting(t, tcp.StateEstablished)
	p.tell(w, report, about)
	sent := c.Info().BytesSent
	ask(w, 0, 0, p.segment(tcp.ACK, c.Tuple().LocalPort, 1001, p.seq(about)+uint32(sent)))
	c.Tx().Write([]byte("again"))
	c.Wrote(w.now)
	w.run(time.Hour)
	require.ErrorIs(t, c.Err(), tcp.ErrTimeout)
	assert.NotErrorIs(t, c.Err(), report)
}

// RFC 1122 §4.1.3.3: UDP passes ICMP errors to the program. Like Linux, it passes only the errors
// that repeating the datagram would not avoid: one call of a connected socket fails.
func TestRFC1122_4_1_3_3_ICMPErrorsAndUDP(t *testing.T) {
	for _, m := range meanings {
		p := pathOf(m.typ)
		w := newWorld(t)
		a := p.host(w)
		u, err := a.Datagrams().Dial(netip.AddrPort{}, p.far)
		require.NoError(t, err)
		require.NoError(t, a.Datagrams().Send(w.now, u, netip.AddrPort{}, []byte("hello")))
		about := sentAtOnce(w, 0)[0]
		report := icmp.ReportError{Type: m.typ, Code: m.code}
		p.tell(w, report, about)
		err = u.TakeError()
		switch {
		case m.refuses:
			require.ErrorIs(t, err, udp.ErrRefused)
		case m.passed:
			require.ErrorIs(t, err, report)
		default:
			require.NoError(t, err, report.Error())
		}
		assert.Equal(t, uint64(1), u.Info().Errors)
		require.NoError(t, u.TakeError(), "once")
	}
}

// host adds node 0 to a world.
func (p path) host(w *world) *stack.Stack {
	if p.near.Is6() {
		return w.add(stack.Config{
			Interfaces: []stack.Interface{face6("if0", p.near.String()+"/64")},
			Routes:     []stack.Route{route("::/0", p.router.String())},
		})
	}
	return w.add(stack.Config{
		Interfaces: []stack.Interface{face("if0", p.near.String()+"/24")},
		Routes:     []stack.Route{route("0.0.0.0/0", p.router.String())},
	})
}

// connecting returns a host with a connection to far in the given state, and the packet that it has
// in flight.
func (p path) connecting(t *testing.T, state tcp.State) (w *world, c *tcp.Conn, about []byte) {
	t.Helper()
	w = newWorld(t)
	a := p.host(w)
	sent := func() []byte {
		list := sentAtOnce(w, 0)
		require.Len(t, list, 1)
		return list[0]
	}
	c, err := a.DialTCP(w.now, netip.AddrPort{}, p.far)
	require.NoError(t, err)
	about = sent()
	port, iss := c.Tuple().LocalPort, p.seq(about)
	switch state {
	case tcp.StateSynSent:
	case tcp.StateSynReceived: // a simultaneous open
		about = ask(w, 0, 0, p.segment(tcp.SYN, port, 1000, 0))[0]
	case tcp.StateEstablished, tcp.StateFinWait1:
		ask(w, 0, 0, p.segment(tcp.SYN|tcp.ACK, port, 1000, iss+1))
		c.Tx().Write([]byte("hello"))
		if state == tcp.StateFinWait1 {
			_ = c.CloseWrite(w.now)
		}
		c.Wrote(w.now)
		about = sent()
	default:
		panic(fmt.Sprintf("BUG: %v", state))
	}
	require.Equal(t, state, c.State())
	return w, c, about
}
