package stack_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// narrowLine is A - B - C. The second link has the given MTU.
func narrowLine(t *testing.T, mtu int) (w *world, a, b, c *stack.Stack) {
	t.Helper()
	return routedLine(t, mtu, false)
}

func routedLine(t *testing.T, mtu int, catching bool) (w *world, a, b, c *stack.Stack) {
	t.Helper()
	w = newWorld(t)
	narrow := func(name, prefix string) stack.Interface {
		f := face(name, prefix)
		f.MTU = mtu
		return f
	}
	a = w.add(stack.Config{
		Interfaces: []stack.Interface{face("if0", "10.0.0.1/24")},
		Routes:     []stack.Route{route("0.0.0.0/0", "10.0.0.2")},
	})
	b = w.add(stack.Config{
		Interfaces: []stack.Interface{face("if0", "10.0.0.2/24"), narrow("if1", "10.1.0.1/24")},
		Routes:     []stack.Route{route("10.9.0.0/16", "10.1.0.2")},
		Forwarding: true,
	})
	c = w.add(stack.Config{
		Interfaces: []stack.Interface{narrow("if0", "10.1.0.2/24")},
		Routes:     []stack.Route{route("0.0.0.0/0", "10.1.0.1")},
	})
	if catching {
		c.Catch(10)
	}
	w.wire(end{0, 0}, end{1, 0})
	w.wire(end{1, 1}, end{2, 0})
	return w, a, b, c
}

// pattern returns n bytes. Neighboring blocks of it differ.
func pattern(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i ^ i>>8)
	}
	return p
}

// readAll reads one datagram of any length.
func readAll(t *testing.T, s *udp.Socket) []byte {
	t.Helper()
	p := make([]byte, 70_000)
	r, ok := udp.Dequeue(s.Rx(), p)
	if !ok {
		return nil
	}
	return p[:r.Len]
}

// RFC 791 §3.2: datagrams of any length cross links with smaller MTUs in both directions, even if a
// link in the middle fragments them again.
func TestRFC791_3_2_LongDatagramsCrossNarrowLinks(t *testing.T) {
	for _, mtu := range []int{1400, 576, 68} {
		w, a, b, c := narrowLine(t, mtu)
		w.room = 64 // number of packets at one time: all are queued and none is dropped
		server := bindUDP(t, c, "0.0.0.0:53")
		client, err := a.Datagrams().Dial(netip.AddrPort{}, netip.MustParseAddrPort("10.1.0.2:53"))
		require.NoError(t, err)
		for _, n := range []int{0, 1, 28, 1372, 1373, 4000, udp.MaxPayload} {
			want := pattern(n)
			require.NoError(t, a.Datagrams().Send(w.now, client, netip.AddrPort{}, want))
			w.run(10 * time.Millisecond)
			require.True(t, bytes.Equal(want, readAll(t, server)), "%d bytes through %d", n, mtu)
			require.NoError(t, c.Datagrams().Send(w.now, server, client.Local(), want))
			w.run(10 * time.Millisecond)
			require.True(t, bytes.Equal(want, readAll(t, client)), "%d bytes back through %d", n, mtu)
		}
		for i, s := range []*stack.Stack{a, b, c} {
			assert.Empty(t, drops(s, 0), "%d, stack %d", mtu, i)
			assert.Zero(t, s.Fragments().Datagrams)
		}
		assert.Zero(t, b.Fragments().Fragments, "RFC 1812 §5.2.6: a router forwards fragments")
	}
}

// RFC 1812 §4.2.2.7: a router sends fragments in order, each as long as the link allows.
func TestRFC1812_4_2_2_7_FragmentsInOrder(t *testing.T) {
	w, a, _, c := narrowLine(t, 576)
	bindUDP(t, c, "0.0.0.0:53")
	var cut []string
	w.mangle = func(b []byte) {
		if at := int(b[6]&0x1f)<<8 | int(b[7]); b[6]&0x20 != 0 || at > 0 {
			cut = append(cut, fmt.Sprintf("%d at %d", len(b)-20, 8*at))
		}
	}
	client := bindUDP(t, a, "0.0.0.0:0")
	require.NoError(t, a.Datagrams().Send(w.now, client, netip.MustParseAddrPort("10.1.0.2:53"), pattern(1372)))
	w.run(10 * time.Millisecond)
	assert.Equal(t, []string{"552 at 0", "552 at 552", "276 at 1104"}, cut)
}

// TestFragmentsAreCounted checks the counters of sent and received fragments at each interface.
func TestFragmentsAreCounted(t *testing.T) {
	w, a, b, c := narrowLine(t, 576)
	bindUDP(t, c, "0.0.0.0:53")
	client := bindUDP(t, a, "0.0.0.0:0")
	require.NoError(t, a.Datagrams().Send(w.now, client, netip.MustParseAddrPort("10.1.0.2:53"), pattern(3000)))
	w.run(10 * time.Millisecond)
	of := func(c control.Counters) string {
		return fmt.Sprintf("%d of %d, %d packets", c.Fragments, c.Fragmented, c.Packets)
	}
	assert.Equal(t, "3 of 1, 3 packets", of(a.Interfaces().Infos()[0].Out))
	assert.Equal(t, "0 of 0, 3 packets", of(b.Interfaces().Infos()[0].In))
	// The router splits two packets of 1396 bytes into three fragments each. It forwards the last
	// packet, of 276 bytes, unchanged.
	assert.Equal(t, "6 of 2, 7 packets", of(b.Interfaces().Infos()[1].Out))
	assert.Equal(t, "7 of 1, 7 packets", of(c.Interfaces().Infos()[0].In))
}

// RFC 1122 §3.2.2.6: an echo reply has all of the request's data, even if the request was
// reassembled.
func TestRFC1122_3_2_2_6_LongEchoes(t *testing.T) {
	w, a, _, _ := narrowLine(t, 576)
	p := newPinger(t, a)
	for i, n := range []int{1372, 1373, 65507} {
		require.NoError(t, p.send(w.now, "10.1.0.2", uint16(i), n, 0))
		w.run(10 * time.Millisecond)
		got := p.take()
		require.Len(t, got, 1, "%d bytes", n)
		assert.Equal(t, icmp.TypeEchoReply, got[0].Type)
		assert.Equal(t, n+8, got[0].Bytes)
	}
	assert.ErrorIs(t, p.send(w.now, "10.1.0.2", 9, 65508, 0), stack.ErrTooBig)
	assert.ErrorIs(t, p.send(w.now, "10.0.0.1", 9, 65508, 0), stack.ErrTooBig)
}

// RFC 1191 §4: a router's error about a packet that must not be fragmented has the next link's MTU,
// and the socket that sent the packet gets the error.
func TestRFC1191_4_DontFragment(t *testing.T) {
	w, a, b, c := narrowLine(t, 576)
	server := bindUDP(t, c, "0.0.0.0:53")
	client, err := a.Datagrams().Dial(netip.AddrPort{}, netip.MustParseAddrPort("10.1.0.2:53"))
	require.NoError(t, err)
	client.SetOptions(udp.Options{DontFragment: true})
	require.NoError(t, a.Datagrams().Send(w.now, client, netip.AddrPort{}, pattern(549)))
	w.run(time.Millisecond)
	assert.ErrorIs(t, client.TakeError(), udp.ErrTooBig)
	assert.Nil(t, readAll(t, server))
	assert.Equal(t, map[string]uint64{ip.DropTooBig.String(): 1}, drops(b, 1))
	require.NoError(t, a.Datagrams().Send(w.now, client, netip.AddrPort{}, pattern(548)))
	w.run(time.Millisecond)
	assert.Equal(t, pattern(548), readAll(t, server))
	assert.NoError(t, client.TakeError())

	t.Log("# datagrams above the path MTU are not sent until the report is old (RFC 1191 §6.3)")
	assert.Equal(t, 576, client.PathMTU(w.now))
	assert.ErrorIs(t, a.Datagrams().Send(w.now, client, netip.AddrPort{}, pattern(549)), stack.ErrTooBig)
	assert.Equal(t, map[string]uint64{ip.DropTooBig.String(): 1}, drops(b, 1))
	client.SetOptions(udp.Options{})
	require.NoError(t, a.Datagrams().Send(w.now, client, netip.AddrPort{}, pattern(549)))
	w.run(time.Millisecond)
	assert.Equal(t, pattern(549), readAll(t, server), "the datagram may be fragmented")
	client.SetOptions(udp.Options{DontFragment: true})
	w.run(10 * time.Minute)
	assert.Zero(t, client.PathMTU(w.now))
	assert.NoError(t, a.Datagrams().Send(w.now, client, netip.AddrPort{}, pattern(549)))
}

// A node ignores a report about a datagram that was not too long (RFC 1191 §4). It never reduces
// the path MTU below the minimum of IPv4 (RFC 791 §3.2).
func TestImpossibleFragmentationNeeded(t *testing.T) {
	w, a, _, _ := narrowLine(t, 576)
	client, err := a.Datagrams().Dial(netip.AddrPort{}, netip.MustParseAddrPort("10.1.0.2:53"))
	require.NoError(t, err)
	client.SetOptions(udp.Options{DontFragment: true})
	src, dst := client.Local().Addr().As4(), ip.V4(10, 1, 0, 2)
	h := ip.Header{Protocol: ip.ProtoUDP, DF: true, TTL: 9, Src: netip.AddrFrom4(src), Dst: dst, TotalLen: 1028}
	sent := udp.Header{SrcPort: client.Local().Port(), DstPort: 53}.Append(
		h.Append(nil), netip.AddrFrom4(src), dst, pattern(1000))
	report := func(mtu int) int {
		body := icmp.Error(nil, dst, icmp.ReportError{Type: icmp.TypeUnreachable, Code: icmp.CodeFragNeeded}, mtu, sent, 576)
		h := ip.Header{
			Protocol: ip.ProtoICMP, TTL: 9, Src: ip.V4(10, 0, 0, 2), Dst: netip.AddrFrom4(src),
			TotalLen: ip.HeaderLen + len(body),
		}
		input(a, w.now, frame(append(h.Append(nil), body...)))
		return client.PathMTU(w.now)
	}
	assert.Zero(t, report(1028))
	assert.Zero(t, report(9000))
	assert.NoError(t, client.TakeError())
	assert.Equal(t, 1006, report(0), "RFC 1191 §7.1: the plateau below the datagram's length")
	assert.Equal(t, 1006, report(1020), "the smallest MTU reported")
	assert.Equal(t, ip.MinMTU, report(10))
	assert.ErrorIs(t, client.TakeError(), udp.ErrTooBig)
}

// Packets of the course's own protocols are not fragmented, because the course's nodes do not
// reassemble them.
func TestTestPacketsAreNotFragmented(t *testing.T) {
	w, a, _, _ := line(t)
	_, err := a.SendTest(w.now, addr("10.1.0.2"), ip.ProtoTest, make([]byte, 1381))
	assert.ErrorIs(t, err, stack.ErrTooBig)
	assert.Equal(t, map[string]uint64{ip.DropTooBig.String(): 1}, drops(a, 0))
}

// pieces returns the fragments of a UDP datagram from A to C, as A sends them.
func pieces(t *testing.T, n int) [][]byte {
	t.Helper()
	src, dst := ip.V4(10, 0, 0, 1), ip.V4(10, 1, 0, 2)
	h := ip.Header{Protocol: ip.ProtoUDP, TTL: 9, ID: 77, Src: src, Dst: dst, TotalLen: 28 + n}
	return cut(t, udp.Header{SrcPort: 9, DstPort: 53}.Append(h.Append(nil), src, dst, pattern(n)), 576)
}

func cut(t *testing.T, packet []byte, mtu int) (list [][]byte) {
	t.Helper()
	var f ip.Fragmenter
	require.True(t, f.Reset(packet, mtu, 0))
	for f.More() {
		b := make([]byte, f.HeaderLen())
		list = append(list, append(b, f.Next(b)...))
	}
	return list
}

// RFC 792, RFC 1122 §3.3.2: when reassembly times out, the receiver sends a Time Exceeded message
// only if fragment zero has arrived.
func TestRFC1122_3_3_2_ReassemblyTimeExceeded(t *testing.T) {
	for _, zero := range []bool{true, false} {
		w, a, _, c := narrowLine(t, 576)
		client := bindUDP(t, a, "10.0.0.1:9")
		require.NoError(t, client.Connect(netip.MustParseAddrPort("10.1.0.2:53")))
		list := pieces(t, 3000)
		if !zero {
			list = list[1:]
		}
		for _, b := range list[:3] {
			input(c, w.now, frame(b))
		}
		sent := c.Interfaces().Infos()[0].Out.Packets
		w.run(20*time.Second - time.Microsecond)
		assert.Equal(t, 1, c.Fragments().Datagrams)
		assert.Empty(t, drops(c, 0))
		w.run(time.Millisecond)
		assert.Zero(t, c.Fragments().Datagrams)
		assert.Equal(t, map[string]uint64{ip.DropFragmentTimeout.String(): 3}, drops(c, 0))
		if zero {
			assert.Equal(t, sent+1, c.Interfaces().Infos()[0].Out.Packets)
			assert.Equal(t, uint64(1), client.Info().Errors)
		} else {
			assert.Equal(t, sent, c.Interfaces().Infos()[0].Out.Packets)
			assert.Zero(t, client.Info().Errors)
		}
		assert.NoError(t, client.TakeError(), "as on Linux")
	}
}

// The Time Exceeded message quotes fragment zero and has the code for reassembly.
func TestReassemblyTimeExceededOnTheWire(t *testing.T) {
	w, _, _, c := narrowLine(t, 576)
	list := pieces(t, 3000)
	input(c, w.now, frame(list[1]))
	input(c, w.now, frame(list[0]))
	var seen [][]byte
	c.SetTap(func(_ clock.Time, _ int, dir stack.Direction, _ ip.DropReason, p [][]byte) {
		if dir == stack.Outbound {
			seen = append(seen, slices.Concat(p...))
		}
	})
	w.run(21 * time.Second)
	require.Len(t, seen, 1)
	h, payload, reason := ip.ParseHeader(seen[0])
	require.Equal(t, ip.DropNone, reason)
	assert.Equal(t, ip.V4(10, 0, 0, 1), h.Dst)
	m, ok := icmp.Parse(payload, h.Src, h.Dst)
	require.True(t, ok)
	assert.Equal(t, icmp.TypeTimeExceeded, m.Type)
	assert.Equal(t, icmp.CodeReassembly, m.Code)
	assert.Equal(t, list[0][:28], m.Body[:28])
}

// RFC 5722 §4, RFC 1858 §4: forged fragments are counted by drop reason, and no data of their
// datagram is delivered.
func TestForgedFragmentsAreCountedByReason(t *testing.T) {
	list := pieces(t, 1500)
	forged := append([]byte(nil), list[1]...)
	forged[30] ^= 1
	far := append([]byte(nil), list[0]...)
	far[6], far[7] = 0x3f, 0xff
	far[10], far[11] = 0, 0
	sum := checksum.Checksum(far[:20])
	far[10], far[11] = byte(sum>>8), byte(sum)
	w, _, _, c := narrowLine(t, 576)
	server := bindUDP(t, c, "0.0.0.0:53")
	for _, b := range [][]byte{list[0], list[1], far, forged, list[2], list[0]} {
		input(c, w.now, frame(b))
	}
	assert.Nil(t, readAll(t, server))
	assert.Equal(t, map[string]uint64{
		ip.DropFragmentOverlap.String(): 5, // two in the buffer, the forged one, and two later ones
		ip.DropFragmentTooLong.String(): 1,
	}, drops(c, 0))
	w.run(time.Millisecond)
	assert.Zero(t, c.Interfaces().Infos()[0].Out.Packets, "silently")
}

// A host that answers for every address reassembles segments to other addresses, too.
func TestCaughtSegmentsInFragments(t *testing.T) {
	w, _, b, c := routedLine(t, 1400, true)
	src, dst := ip.V4(10, 0, 0, 1), ip.V4(10, 9, 9, 9)
	h := tcp.Header{Seq: 7, Flags: tcp.SYN, Window: 1000}
	h.Options.MSS = 1360
	seg := make([]byte, h.Size())
	h.Put(seg, 1000, 80)
	seg = append(seg, pattern(100)...)
	sum := checksum.Sum(seg, checksum.PseudoHeader(src, dst, ip.ProtoTCP, len(seg)))
	seg[16], seg[17] = byte(^checksum.Fold(sum)>>8), byte(^checksum.Fold(sum))
	packet := ip.Header{
		Protocol: ip.ProtoTCP, TTL: 9, Src: src, Dst: dst, TotalLen: 20 + len(seg),
	}.Append(nil)
	for _, p := range cut(t, append(packet, seg...), 68) {
		input(b, w.now, frame(p))
	}
	w.run(time.Millisecond)
	assert.Empty(t, drops(c, 0))
	tuple, _, ok := c.TCP().NextCaught()
	require.True(t, ok)
	assert.Equal(t, dst, tuple.LocalAddr)
}

// If a link accepts few packets at a time, a datagram leaves in several calls of Output.
func TestFragmentsWaitForRoom(t *testing.T) {
	w, a, _, _ := line(t)
	s := bindUDP(t, a, "0.0.0.0:53")
	to := netip.MustParseAddrPort("10.0.0.2:53")
	require.NoError(t, a.Datagrams().Send(w.now, s, to, pattern(10_000)))
	require.NoError(t, a.Datagrams().Send(w.now, s, to, pattern(10)))
	batch := buffer.NewBatch()
	var got []byte
	calls := 0
	for ; len(got) < 10_000; calls++ {
		require.Less(t, calls, 10)
		batch.Reset()
		more := a.Output(w.now, []int{3}, batch)
		assert.Equal(t, calls < 2, more, "Output must be called again: no event reports new room")
		n := 0
		for _, tr := range batch.Trains() {
			for k := range tr.Count {
				h, payload, _ := ip.ParseHeader(slices.Concat(tr.Packet(k)...))
				if h.IsFragment() {
					require.Equal(t, len(got), h.FragOff)
					got = append(got, payload...)
				}
				n++
			}
		}
		assert.LessOrEqual(t, n, 3)
	}
	assert.Equal(t, 3, calls, "eight packets, three at a time, and the short datagram with the last two")
	assert.Equal(t, pattern(10_000), got[8:])
	assert.True(t, a.Datagrams().HasRoom())
	assert.Empty(t, drops(a, 0))

	t.Log("# Output reports no more work for a full link: the link signals when it has room")
	require.NoError(t, a.Datagrams().Send(w.now, s, to, pattern(10_000)))
	batch.Reset()
	assert.False(t, a.Output(w.now, []int{0}, batch))
	assert.Empty(t, batch.Trains())
}

// A router sends all fragments of a packet or none, because some of them alone would be useless.
func TestRouterSendsAllFragmentsOrNone(t *testing.T) {
	w, _, b, _ := narrowLine(t, 576)
	packet := append(ip.Header{
		TotalLen: 1400, TTL: 9, Protocol: ip.ProtoUDP, Src: ip.V4(10, 0, 0, 1), Dst: ip.V4(10, 1, 0, 2),
	}.Append(nil), pattern(1380)...)
	batch := buffer.NewBatch()
	input(b, w.now, frame(slices.Concat(packet, packet)[:1400]))
	input(b, w.now, frame(append([]byte(nil), packet...)))
	assert.True(t, b.Output(w.now, []int{9, 5}, batch))
	require.Len(t, batch.Trains(), 1)
	assert.Equal(t, 3, batch.Trains()[0].Count)
	batch.Reset()
	assert.False(t, b.Output(w.now, []int{9, 2}, batch))
	assert.Empty(t, batch.Trains())
	assert.Equal(t, map[string]uint64{ip.DropQueueFull.String(): 1}, drops(b, 1))
}

// The fragments of one packet may need more than one batch.
func TestFragmentsContinueInTheNextBatch(t *testing.T) {
	w, _, b, _ := narrowLine(t, 68)
	h := ip.Header{
		TotalLen: 65535, TTL: 9, Protocol: ip.ProtoUDP, Src: ip.V4(10, 0, 0, 1), Dst: ip.V4(10, 1, 0, 2),
	}
	input(b, w.now, frame(append(h.Append(nil), pattern(65515)...)))
	batch := buffer.NewBatch()
	var got []byte
	for more, calls := true, 0; more; calls++ {
		require.Less(t, calls, 5)
		batch.Reset()
		more = b.Output(w.now, []int{5000, 5000}, batch)
		for _, tr := range batch.Trains() {
			for k := range tr.Count {
				_, payload, _ := ip.ParseHeader(slices.Concat(tr.Packet(k)...))
				got = append(got, payload...)
			}
		}
	}
	assert.True(t, bytes.Equal(pattern(65515), got))
}

// A router drops a fragment that ends beyond 65,535 bytes. If the router fragmented it, the offset
// would wrap, and the pieces would overlap the beginning of the datagram.
func TestRouterDropsPingOfDeath(t *testing.T) {
	w, _, b, c := narrowLine(t, 576)
	h := ip.Header{
		TotalLen: 1400, TTL: 9, Protocol: ip.ProtoUDP, FragOff: 65520,
		Src: ip.V4(10, 0, 0, 1), Dst: ip.V4(10, 1, 0, 2),
	}
	input(b, w.now, frame(append(h.Append(nil), pattern(1380)...)))
	w.run(time.Millisecond)
	assert.Equal(t, map[string]uint64{ip.DropFragmentTooLong.String(): 1}, drops(b, 1))
	assert.Zero(t, c.Interfaces().Infos()[0].In.Packets)
}

func TestInvalidMTUs(t *testing.T) {
	for _, mtu := range []int{-1, 1, 67, 65536} {
		f := face("if0", "10.0.0.1/24")
		f.MTU = mtu
		_, err := stack.New(1, stack.Config{Interfaces: []stack.Interface{f}})
		assert.ErrorContains(t, err, "must be 68 to 65535", "RFC 791 §3.2: every module forwards 68 bytes")
	}
	_, err := stack.New(1, stack.Config{
		Interfaces: []stack.Interface{face("if0", "10.0.0.1/24")},
		Knobs:      stack.Knobs{IP: stack.IPKnobs{Reassembly: ip.ReassemblyConfig{MaxBytes: 1}}},
	})
	assert.ErrorIs(t, err, ip.ErrReassembly)
}

// The two ends of a link may have different MTUs. Each accepts packets that are larger than its own
// MTU, because RFC 791 §3.2 limits only the sender.
func TestEndsWithDifferentMTUs(t *testing.T) {
	w := newWorld(t)
	narrow := face("if0", "10.0.0.2/24")
	narrow.MTU = 68
	a := w.add(stack.Config{Interfaces: []stack.Interface{face("if0", "10.0.0.1/24")}})
	b := w.add(stack.Config{Interfaces: []stack.Interface{narrow}})
	w.wire(end{0, 0}, end{1, 0})
	server, client := bindUDP(t, b, "10.0.0.2:53"), bindUDP(t, a, "10.0.0.1:9")
	for _, n := range []int{40, 1372, 5000} {
		require.NoError(t, a.Datagrams().Send(w.now, client, server.Local(), pattern(n)))
		w.run(time.Millisecond)
		assert.Equal(t, pattern(n), readAll(t, server))
		require.NoError(t, b.Datagrams().Send(w.now, server, client.Local(), pattern(n)))
		w.run(time.Millisecond)
		assert.Equal(t, pattern(n), readAll(t, client))
	}
}

// RFC 6864 §4.3: datagrams that may be fragmented have distinct identifications. Datagrams with DF
// set need none (§4.1).
func TestRFC6864_4_IdentificationsOnTheWire(t *testing.T) {
	w, a, b, _ := line(t)
	s := bindUDP(t, a, "0.0.0.0:53")
	seen := map[uint32]bool{}
	b.SetTap(func(_ clock.Time, _ int, dir stack.Direction, _ ip.DropReason, p [][]byte) {
		if h, _, _ := ip.ParseHeader(p[0]); dir == stack.Inbound {
			seen[h.ID] = true
		}
	})
	to := netip.MustParseAddrPort("10.0.0.2:53")
	for range 1000 {
		require.NoError(t, a.Datagrams().Send(w.now, s, to, []byte("x")))
		w.run(time.Millisecond)
	}
	assert.Len(t, seen, 1000)
	s.SetOptions(udp.Options{DontFragment: true})
	clear(seen)
	require.NoError(t, a.Datagrams().Send(w.now, s, to, []byte("x")))
	w.run(time.Millisecond)
	assert.Equal(t, map[uint32]bool{0: true}, seen)
}

// fragmentingRouter returns a function that forwards 1,400-byte packets through a router to a link
// with an MTU of 576.
func fragmentingRouter(t *testing.T) (forward func()) {
	t.Helper()
	_, _, b, _ := narrowLine(t, 576)
	packet := append(ip.Header{
		TotalLen: 1400, TTL: 60, Protocol: ip.ProtoUDP,
		Src: ip.V4(10, 0, 0, 1), Dst: ip.V4(10, 1, 0, 2),
	}.Append(nil), pattern(1380)...)
	data := bytes.Repeat(packet, 40)
	list := (&buffer.Frame{Data: data, Size: 1400}).Packets(nil)
	batch, room := buffer.NewBatch(), make([]int, 2)
	return func() {
		for i := range 40 {
			copy(data[i*1400:i*1400+20], packet)
		}
		b.Input(5, 0, false, list)
		room[0], room[1] = 1000, 1000
		batch.Reset()
		b.Output(5, room, batch)
	}
}

func TestForwardingInFragmentsAllocatesNothing(t *testing.T) {
	assert.Zero(t, testing.AllocsPerRun(100, fragmentingRouter(t)))
}

func BenchmarkForwardInFragments(b *testing.B) {
	forward := fragmentingRouter(&testing.T{})
	b.ReportAllocs()
	for b.Loop() {
		forward()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/40, "ns/packet")
}

// BenchmarkReassemble measures the reassembly and delivery of a 60 kB datagram.
func BenchmarkReassemble(b *testing.B) {
	t := &testing.T{}
	_, _, _, c := narrowLine(t, 1400)
	server := bindUDP(t, c, "0.0.0.0:53")
	src, dst := ip.V4(10, 0, 0, 1), ip.V4(10, 1, 0, 2)
	h := ip.Header{Protocol: ip.ProtoUDP, TTL: 9, ID: 77, Src: src, Dst: dst, TotalLen: 28 + 60_000}
	packet := udp.Header{SrcPort: 9, DstPort: 53}.Append(h.Append(nil), src, dst, pattern(60_000))
	data := slices.Concat(cut(t, packet, 1396)...) // all pieces except the last have equal length
	list := (&buffer.Frame{Data: data, Size: 1396}).Packets(nil)
	p := make([]byte, 65536)
	b.SetBytes(60_000)
	b.ReportAllocs()
	for b.Loop() {
		c.Input(5, 0, false, list)
		if r, ok := udp.Dequeue(server.Rx(), p); !ok || r.Len != 60_000 {
			b.Fatal("not whole")
		}
	}
}
