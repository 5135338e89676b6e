package stack_test

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// pinged runs a ping on a stack of a world and returns the replies.
func pinged(w *world, s *stack.Stack, cfg icmp.PingConfig) []icmp.Reply {
	w.t.Helper()
	if cfg.Count == 0 {
		cfg.Count = 1
	}
	if !cfg.Src.IsValid() && cfg.Iface == 0 {
		cfg.Iface = -1
	}
	p := icmp.NewPing(w.now, cfg)
	require.NoError(w.t, s.Probers().Start(p))
	w.run(time.Minute)
	assert.True(w.t, p.Done())
	s.Probers().Stop(p)
	var list []icmp.Reply
	for {
		r, ok := p.Next()
		if !ok {
			return list
		}
		list = append(list, r)
	}
}

func TestPingThroughARouterInVirtualTime(t *testing.T) {
	w, a, _, _ := line(t)
	list := pinged(w, a, icmp.PingConfig{
		Dst: addr("10.1.0.2"), ID: 7, Count: 3, Interval: 10 * time.Millisecond, Data: make([]byte, 56),
	})
	require.Len(t, list, 3)
	for i, r := range list {
		assert.Equal(t, uint16(i+1), r.Seq)
		assert.Equal(t, 400*time.Microsecond, r.RTT, "four links of 100 µs each, to the nanosecond")
		assert.Equal(t, 63, r.TTL)
		assert.Equal(t, 64, r.Bytes)
		assert.Equal(t, addr("10.1.0.2"), r.From)
	}
}

func TestPingReportsICMPErrors(t *testing.T) {
	w, a, _, _ := line(t)
	for _, tt := range []struct {
		name    string
		cfg     icmp.PingConfig
		from    netip.Addr
		verdict icmp.Verdict
		code    uint8
	}{
		{"TTL", icmp.PingConfig{Dst: addr("10.1.0.2"), TTL: 1}, addr("10.0.0.2"), icmp.Expired, 0},
		{"network", icmp.PingConfig{Dst: addr("10.9.0.2")}, addr("10.0.0.2"), icmp.Unreachable, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list := pinged(w, a, tt.cfg)
			require.Len(t, list, 1)
			assert.Equal(t, tt.from, list[0].From)
			assert.Equal(t, tt.verdict, list[0].Verdict)
			assert.Equal(t, tt.code, list[0].Code)
		})
	}
}

func TestTooLargePingFailsWithTheMTU(t *testing.T) {
	w, a, _, _ := line(t)
	list := pinged(w, a, icmp.PingConfig{Dst: addr("10.1.0.2"), DF: true, Data: make([]byte, 2000)})
	require.Len(t, list, 1)
	assert.Equal(t, icmp.Failed, list[0].Verdict)
	require.ErrorIs(t, list[0].Err, stack.ErrTooBig)
	assert.Equal(t, 1400, list[0].MTU)
}

func TestPingOfTheNodeItself(t *testing.T) {
	w, a, _, _ := line(t)
	list := pinged(w, a, icmp.PingConfig{Dst: addr("10.0.0.1")})
	require.Len(t, list, 1)
	assert.Equal(t, icmp.Replied, list[0].Verdict)
	assert.Equal(t, 64, list[0].TTL)
}

func TestEachKindOfTracerouteFindsTheRouter(t *testing.T) {
	for name, cfg := range map[string]icmp.TraceConfig{
		"udp":  {Kind: icmp.Datagram, ID: 50000, Port: 33434, Data: make([]byte, 32)},
		"icmp": {Kind: icmp.Echo, ID: 7, Port: 1},
		"tcp":  {Kind: icmp.SYN, ID: 62500, Port: 80},
	} {
		t.Run(name, func(t *testing.T) {
			w, a, _, _ := line(t)
			cfg.Dst, cfg.Iface, cfg.First, cfg.Max = addr("10.1.0.2"), -1, 1, 30
			cfg.Queries, cfg.Parallel, cfg.Wait = 3, 16, 5*time.Second
			tr := icmp.NewTrace(cfg)
			require.NoError(t, a.Probers().Start(tr))
			w.run(time.Minute)
			require.True(t, tr.Done())
			for ttl, from := range []string{"10.0.0.2", "10.1.0.2"} {
				_, replies, ok := tr.Hop()
				require.True(t, ok)
				for _, r := range replies {
					assert.Equal(t, addr(from), r.From)
					assert.Equal(t, time.Duration(ttl+1)*200*time.Microsecond, r.RTT)
				}
			}
			_, _, ok := tr.Hop()
			assert.False(t, ok)
		})
	}
}

func TestProbersAreBounded(t *testing.T) {
	_, a, _, _ := line(t)
	var first *icmp.Ping
	for range 64 {
		first = icmp.NewPing(1, icmp.PingConfig{Dst: addr("10.1.0.2")})
		require.NoError(t, a.Probers().Start(first))
	}
	require.ErrorIs(t, a.Probers().Start(icmp.NewPing(1, icmp.PingConfig{})), stack.ErrTooMany)
	a.Probers().Stop(first)
	require.NoError(t, a.Probers().Start(first))
}

func TestPingOfAnUnknownAddressOnTheLink(t *testing.T) {
	w := newWorld(t)
	a := w.add(stack.Config{Interfaces: []stack.Interface{{
		Name: "if0", Addr: netip.MustParsePrefix("10.0.0.1/24"), Neighbors: []netip.Addr{addr("10.0.0.2")},
	}}})
	list := pinged(w, a, icmp.PingConfig{Dst: addr("10.0.0.9")})
	require.Len(t, list, 1)
	assert.Equal(t, addr("10.0.0.1"), list[0].From, "as after a failed ARP request")
	assert.Equal(t, icmp.Unreachable, list[0].Verdict)
	assert.Equal(t, uint8(1), list[0].Code)
}

// FuzzProbersInput checks that a ping and traceroutes continue after any packet, and that the
// memory they use is bounded.
func FuzzProbersInput(f *testing.F) {
	f.Add(uint8(1), []byte{0, 0, 0xff, 0xfd, 0, 1, 0, 1})
	f.Add(uint8(1), []byte{3, 4, 0, 0, 0, 0, 2, 64, 0x45, 0, 0, 84, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 1, 0, 2, 8, 0, 0, 0, 0, 1, 0, 1})
	f.Add(uint8(1), []byte{11, 0, 0, 0, 0, 0, 0, 0, 0x45})
	f.Add(uint8(6), make([]byte, 20))
	f.Add(uint8(17), []byte{0x82, 0x9a, 0xc3, 0x50, 0, 8, 0, 0})
	f.Fuzz(func(t *testing.T, protocol uint8, payload []byte) {
		if len(payload) > 1300 {
			return
		}
		if protocol == ip.ProtoICMP && len(payload) >= 4 {
			payload[2], payload[3] = 0, 0
			// makes the checksum correct
			binary.BigEndian.PutUint16(payload[2:], checksum.Checksum(payload))
		}
		w, a, _, _ := line(t)
		dst := addr("10.1.0.2")
		ping := icmp.NewPing(w.now, icmp.PingConfig{Dst: dst, Iface: -1, ID: 1, Count: 1})
		require.NoError(t, a.Probers().Start(ping))
		trace := icmp.NewTrace(icmp.TraceConfig{
			Dst: dst, Iface: -1, ID: 50000, Port: 33434, First: 1, Max: 3, Queries: 3, Parallel: 1,
			Wait: time.Second, DF: true, Overhead: 28, Data: make([]byte, 2000),
		})
		require.NoError(t, a.Probers().Start(trace))
		w.run(50 * time.Microsecond)
		h := ip.Header{
			Protocol: protocol, TTL: 9, Src: netip.AddrFrom4([4]byte{10, 0, 0, 2}), Dst: netip.AddrFrom4([4]byte{10, 0, 0, 1}),
			TotalLen: ip.HeaderLen + len(payload),
		}
		packet := append(h.Append(nil), payload...)
		input(a, w.now, buffer.Frame{Data: packet, Size: len(packet)})
		w.run(time.Minute)
		require.True(t, ping.Done())
		require.True(t, trace.Done())
		require.LessOrEqual(t, ping.Info().Received, 1)
	})
}
