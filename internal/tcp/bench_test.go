package tcp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// pipe passes trains from one host to the other without encoding them. It measures the engine and
// the copies into and out of the ring buffers.
type pipe struct {
	now   clock.Time
	hosts [2]*Host
	a, b  *Conn
	room  []int
	train Train
	seg   Segment
	buf   []byte
}

func newPipe(tb testing.TB, cfg Config) *pipe {
	tb.Helper()
	p := &pipe{now: clock.Time(time.Hour), room: []int{1 << 20}, buf: make([]byte, 64<<10)}
	for i, local := range []netip.Addr{addrA, addrB} {
		cfg.Route = func(netip.Addr) Path { return Path{MTU: 1400, Local: local} }
		h, err := NewHost(cfg)
		require.NoError(tb, err)
		p.hosts[i] = h
	}
	l, err := p.hosts[1].Listen(netip.AddrPortFrom(addrB, 80), 1)
	require.NoError(tb, err)
	p.a, err = p.hosts[0].Connect(p.now, netip.AddrPortFrom(addrB, 80), 0)
	require.NoError(tb, err)
	for range 4 {
		p.exchange()
	}
	p.b, _ = l.Accept()
	require.NotNil(tb, p.b)
	p.drain()
	return p
}

// exchange carries everything that both hosts have to send, once.
func (p *pipe) exchange() {
	for i, h := range p.hosts {
		for h.Output(p.now, p.room, &p.train) {
			t := &p.train
			p.seg = Segment{
				Tuple: Tuple{
					LocalAddr: t.RemoteAddr, RemoteAddr: t.LocalAddr,
					LocalPort: t.RemotePort, RemotePort: t.LocalPort,
				},
				Header: t.Header, Payload: t.Payload, Len: t.Len, Count: t.Segments(), ECN: t.ECN,
			}
			p.hosts[1-i].Input(p.now, &p.seg)
		}
		p.now += 1000
	}
}

func (p *pipe) drain() {
	for _, h := range p.hosts {
		for {
			if _, _, _, ok := h.NextEvent(); !ok {
				break
			}
		}
		if h.Deadline().Due(p.now) {
			h.Advance(p.now)
		}
	}
}

// move writes n bytes at one end and reads them at the other.
func (p *pipe) move(n int) {
	for read := 0; read < n; {
		if p.a.Tx().Write(p.buf) > 0 {
			p.a.Wrote(p.now)
		}
		p.exchange()
		p.drain()
		for {
			k := p.b.Rx().Read(p.buf)
			if k == 0 {
				break
			}
			read += k
			p.b.Consumed(p.now)
		}
	}
}

// BenchmarkBulk moves data one way, with and without timestamps. The time per segment includes both
// ends.
func BenchmarkBulk(b *testing.B) {
	for name, off := range map[string]bool{"stamps": false, "no stamps": true} {
		b.Run(name, func(b *testing.B) {
			p := newPipe(b, Config{Knobs: Knobs{NoTimestamps: off}})
			p.move(8 << 20)
			b.SetBytes(1 << 20)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				p.move(1 << 20)
			}
			segments := float64(b.N) * (1 << 20) / float64(p.a.Info().SndMSS)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/segments, "ns/segment")
		})
	}
}

// BenchmarkHeader measures writing and parsing a segment's header with and without timestamps.
func BenchmarkHeader(b *testing.B) {
	for name, o := range map[string]Options{"stamps": stamp(1, 2), "no stamps": {}} {
		b.Run(name, func(b *testing.B) {
			h := Header{Seq: 1, Ack: 2, Flags: ACK, Window: 3, Options: o}
			buf := make([]byte, h.Size())
			for b.Loop() {
				h.Put(buf, 80, 81)
				if _, _, _, _, ok := ParseHeader(buf); !ok {
					b.Fatal("not a header")
				}
			}
		})
	}
}

// BenchmarkBulkSegments is BenchmarkBulk without trains: one segment at a time.
func BenchmarkBulkSegments(b *testing.B) {
	p := newPipe(b, Config{TrainSegments: 1})
	p.move(8 << 20)
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		p.move(1 << 20)
	}
	segments := float64(b.N) * (1 << 20) / 1360
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/segments, "ns/segment")
}

// BenchmarkRequest measures a 64-byte request and its reply.
func BenchmarkRequest(b *testing.B) {
	p := newPipe(b, Config{Knobs: Knobs{NoDelay: true}})
	b.ReportAllocs()
	for b.Loop() {
		p.request()
	}
}

func (p *pipe) request() {
	p.a.Tx().Write(p.buf[:64])
	p.a.Wrote(p.now)
	p.exchange()
	p.b.Rx().Read(p.buf[:64])
	p.b.Consumed(p.now)
	p.b.Tx().Write(p.buf[:64])
	p.b.Wrote(p.now)
	p.exchange()
	p.a.Rx().Read(p.buf[:64])
	p.a.Consumed(p.now)
	p.drain()
}

// BenchmarkConnect opens and closes a connection.
func BenchmarkConnect(b *testing.B) {
	p := newPipe(b, Config{MSL: -1})
	l, err := p.hosts[1].Listen(netip.AddrPortFrom(addrB, 81), 8)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		c, err := p.hosts[0].Connect(p.now, netip.AddrPortFrom(addrB, 81), 0)
		require.NoError(b, err)
		p.exchange()
		p.exchange()
		d, ok := l.Accept()
		require.True(b, ok)
		c.Close(p.now)
		p.exchange()
		d.Close(p.now)
		p.exchange()
		p.exchange()
		p.drain()
		require.Equal(b, StateClosed, c.State())
	}
}

// TestDataPathAllocatesNothing checks that no segment allocates memory, in both directions, in
// trains and alone, for requests and bulk data.
func TestDataPathAllocatesNothing(t *testing.T) {
	for name, cfg := range map[string]Config{
		"trains": {}, "segments": {TrainSegments: 1}, "plain": {Knobs: Knobs{OptionsOff: true}},
		"ECN": {Knobs: Knobs{ECN: ECNOn}}, "no timestamps": {Knobs: Knobs{NoTimestamps: true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPipe(t, cfg)
			p.move(8 << 20)
			require.Zero(t, testing.AllocsPerRun(50, func() { p.move(1 << 20) }))
			require.Zero(t, testing.AllocsPerRun(50, p.request))
			require.NoError(t, p.a.Err())
			require.Zero(t, p.a.Info().TotalRetrans)
		})
	}
}
