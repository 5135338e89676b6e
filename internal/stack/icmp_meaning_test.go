package stack_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	typ, code       uint8
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
}

// far is the remote address of the tests' connections: a node that does not exist.
var far = netip.MustParseAddrPort("10.1.0.2:80")

// tell gives node 0 an ICMP error about one of its packets and returns the packets that it sends.
func tell(w *world, typ, code uint8, about []byte) [][]byte {
	m := icmp.Error(nil, typ, code, [4]byte{}, about, 576)
	return ask(w, 0, 0, packet(ip.Header{Protocol: ip.ProtoICMP, Src: routerA, Dst: hostA}, m))
}

// segmentOf is a packet from far to node 0.
func segmentOf(flags tcp.Flags, port uint16, seq, ack uint32) []byte {
	b := make([]byte, tcp.HeaderSize)
	h := tcp.Header{Seq: seq, Ack: ack, Flags: flags, Window: 9000}
	h.Put(b, far.Port(), port)
	p := packet(ip.Header{Protocol: ip.ProtoTCP, Src: hostC, Dst: hostA}, b)
	readdress(p, addr("10.1.0.2"), addr("10.0.0.1"))
	return p
}

// seqOf is the sequence number of a segment's packet.
func seqOf(p []byte) uint32 { return binary.BigEndian.Uint32(p[20+4:]) }

// RFC 1122 §4.2.3.9, RFC 9293 §3.9.2.2: codes 2 and 3 are hard errors. They end a connection that
// is being opened with ErrRefused. All other errors are soft. RFC 5927 §5.2: to a synchronized
// connection all errors are soft. A soft error is the reason given for a later timeout.
func TestRFC1122_4_2_3_9_WhatEachErrorMeansToTCP(t *testing.T) {
	for _, m := range meanings {
		report := icmp.ReportError{Type: m.typ, Code: m.code}
		t.Run(report.Error(), func(t *testing.T) {
			for _, state := range []tcp.State{
				tcp.StateSynSent, tcp.StateSynReceived, tcp.StateEstablished, tcp.StateFinWait1,
			} {
				w, c, about := connecting(t, state)
				tell(w, m.typ, m.code, about)
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
		w, c, about := connecting(t, tcp.StateSynSent)
		about[20+4]++ // the sequence number
		tell(w, m.typ, m.code, about)
		require.Equal(t, tcp.StateSynSent, c.State())
		w.run(time.Hour)
		require.ErrorIs(t, c.Err(), tcp.ErrTimeout)
		assert.NotErrorIs(t, c.Err(), icmp.ReportError{Type: m.typ, Code: m.code})
	}
}

// A soft error is no longer the reason for a timeout once data has arrived.
func TestASoftErrorThatIsOver(t *testing.T) {
	w, c, about := connecting(t, tcp.StateEstablished)
	tell(w, icmp.TypeUnreachable, icmp.CodeHost, about)
	sent := c.Info().BytesSent
	ask(w, 0, 0, segmentOf(tcp.ACK, c.Tuple().LocalPort, 1001, seqOf(about)+uint32(sent)))
	c.Tx().Write([]byte("again"))
	c.Wrote(w.now)
	w.run(time.Hour)
	require.ErrorIs(t, c.Err(), tcp.ErrTimeout)
	assert.NotErrorIs(t, c.Err(), icmp.ReportError{Type: 3, Code: 1})
}

// RFC 1122 §4.1.3.3: UDP passes ICMP errors to the program. Like Linux, it passes only the errors
// that repeating the datagram would not avoid: one call of a connected socket fails.
func TestRFC1122_4_1_3_3_WhatEachErrorMeansToUDP(t *testing.T) {
	for _, m := range meanings {
		w, a, _, _ := line(t)
		u, err := a.Datagrams().Dial(netip.AddrPort{}, far)
		require.NoError(t, err)
		require.NoError(t, a.Datagrams().Send(w.now, u, netip.AddrPort{}, []byte("hello")))
		about := leaving(w, 0)[0]
		report := icmp.ReportError{Type: m.typ, Code: m.code}
		tell(w, m.typ, m.code, about)
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

// connecting returns a host with a connection to far in the given state, and the packet that it has
// in flight.
func connecting(t *testing.T, state tcp.State) (w *world, c *tcp.Conn, about []byte) {
	t.Helper()
	w = newWorld(t)
	a := w.add(stack.Config{
		Interfaces: []stack.Interface{face("if0", "10.0.0.1/24")},
		Routes:     []stack.Route{route("0.0.0.0/0", "10.0.0.2")},
	})
	sent := func() []byte {
		list := leaving(w, 0)
		require.Len(t, list, 1)
		return list[0]
	}
	c, err := a.DialTCP(w.now, netip.AddrPort{}, far)
	require.NoError(t, err)
	about = sent()
	port, iss := c.Tuple().LocalPort, seqOf(about)
	switch state {
	case tcp.StateSynSent:
	case tcp.StateSynReceived: // simultaneous open
		about = ask(w, 0, 0, segmentOf(tcp.SYN, port, 1000, 0))[0]
	case tcp.StateEstablished, tcp.StateFinWait1:
		ask(w, 0, 0, segmentOf(tcp.SYN|tcp.ACK, port, 1000, iss+1))
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
