package rcp_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rcp"
)

// FuzzRouter runs a router with steps read from bytes: packets from four peers, calls of the
// application, and time. All bounds must hold and every sent packet must parse. In the first byte
// of each step, the lowest three bits select the step and the next two the peer. The second byte is
// the length of the packet that follows.
func FuzzRouter(f *testing.F) {
	step := func(op, who byte, packet []byte) []byte {
		return append([]byte{op | who<<3, byte(len(packet))}, packet...)
	}
	join := func(steps ...[]byte) (all []byte) {
		for _, s := range steps {
			all = append(all, s...)
		}
		return all
	}
	tick, accept := step(2, 0, nil), step(3, 0, nil)
	f.Add(join(step(0, 0, dat(0, "a")), accept, tick, step(4, 0, []byte("answer")), tick,
		step(0, 0, ack(1, 0)), step(0, 0, fin(1)), step(5, 0, nil), tick, step(0, 0, ack(2, 0)), tick))
	f.Add(join(step(0, 1, dat(3, "c")), step(0, 1, dat(1, "b")), step(0, 1, fin(4)),
		step(0, 1, dat(0, "a")), step(0, 1, dat(2, "!")), accept, tick))
	f.Add(join(step(1, 2, nil), tick, step(0, 2, ack(1, 0xff)), step(4, 2, make([]byte, 80)),
		tick, step(0, 2, ack(1, 0xaa)), tick, step(6, 2, nil), tick))
	f.Add(join(step(0, 0, dat(0, "")), step(0, 1, dat(0, "")), step(0, 2, dat(0, "")),
		step(0, 3, dat(0, "")), step(0, 0, ack(0xffffffff, 1)), step(7, 0, nil), tick))
	f.Fuzz(func(t *testing.T, script []byte) {
		for _, cfg := range []rcp.Config{{}, {Window: true}, {Timer: true, Width: 40}} {
			play(t, cfg, script)
		}
	})
}

func play(t *testing.T, cfg rcp.Config, script []byte) {
	t.Helper()
	cfg.PacketSize, cfg.MaxPayload = 16, 32
	cfg.RecvBuffer, cfg.SendBuffer, cfg.MaxSessions = 64, 64, 3
	r := newRouter(t, cfg)
	require.NoError(t, r.Listen(2))
	now := clock.Time(1)
	mine := map[*rcp.Socket]bool{}
	with := func(peer netip.AddrPort, do func(s *rcp.Socket)) {
		for s := range mine {
			if s.Peer() == peer && s.State() != rcp.Closed {
				do(s)
			}
		}
	}
	var d rcp.Datagram
	for steps := 0; len(script) >= 2 && steps < 200; steps++ {
		op, who := script[0]&7, script[0]>>3&3
		n := min(int(script[1]), len(script)-2)
		packet := script[2 : 2+n]
		script = script[2+n:]
		peer := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, who + 1}), 7)
		switch op {
		case 0:
			r.Input(now, peer, packet)
		case 1:
			if s, err := r.Connect(now, peer); err == nil {
				mine[s] = true
			}
		case 2:
			now = now.Add(10 * time.Millisecond)
			r.Advance(now)
			for k := 0; r.Output(now, &d); k++ {
				_, v := rcp.Parse(d.Data)
				require.Equal(t, rcp.Accepted, v)
				require.Less(t, k, 3*(rcp.MaxWidth+1), "a round ends")
			}
		case 3:
			if s, ok := r.Accept(); ok {
				mine[s] = true
			}
		case 4:
			with(peer, func(s *rcp.Socket) {
				if s.State() == rcp.Open {
					read(s)
				}
				s.Tx().Write(packet)
			})
		case 5:
			with(peer, (*rcp.Socket).CloseWrite)
		case 6:
			with(peer, (*rcp.Socket).Close)
		case 7:
			with(peer, (*rcp.Socket).Abort)
		}
		for s, ok := r.Next(); ok; s, ok = r.Next() {
			i := s.Info()
			require.LessOrEqual(t, i.Held, 40)
			require.LessOrEqual(t, i.Unread, 64)
			require.True(t, i.Una <= i.Nxt && i.Nxt <= i.End, "%+v", i)
		}
	}
	r.Close()
	require.Equal(t, clock.Never, r.Deadline())
}
