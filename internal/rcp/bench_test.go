package rcp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rcp"
)

// pipe is two routers that are connected without delay: each receives the other's packets at once.
type pipe struct {
	now    clock.Time
	a, b   *rcp.Router
	tx, rx *rcp.Socket
	text   []byte
	out    []byte
}

func newPipe(tb testing.TB, cfg rcp.Config) *pipe {
	tb.Helper()
	p := &pipe{now: 1, a: newRouter(tb, cfg), b: newRouter(tb, cfg)}
	require.NoError(tb, p.b.Listen(1))
	var err error
	p.tx, err = p.a.Connect(p.now, serverAddr)
	require.NoError(tb, err)
	p.text, p.out = make([]byte, 31*256), make([]byte, 31*256)
	p.tick(1)
	p.rx, _ = p.b.Accept()
	require.NotNil(tb, p.rx)
	for range 4 {
		p.tick(1)
	}
	return p
}

// tick runs one round of both ends. One in drop packets of the sender is lost, or none if drop is
// 1.
func (p *pipe) tick(drop int) (packets int) {
	p.now = p.now.Add(10 * time.Millisecond)
	var d rcp.Datagram
	p.a.Advance(p.now)
	for ; p.a.Output(p.now, &d); packets++ {
		if drop == 1 || packets%drop != 0 {
			p.b.Input(p.now, clientAddr, d.Data)
		}
	}
	p.b.Advance(p.now)
	for ; p.b.Output(p.now, &d); packets++ {
		p.a.Input(p.now, serverAddr, d.Data)
	}
	for _, r := range []*rcp.Router{p.a, p.b} {
		for _, ok := r.Next(); ok; _, ok = r.Next() {
		}
	}
	return packets
}

// move transfers as many bytes as a fence holds.
func (p *pipe) move(drop int) (packets int) {
	p.tx.Tx().Write(p.text)
	for got := 0; got < len(p.text); {
		packets += p.tick(drop)
		got += p.rx.Rx().Read(p.out)
	}
	return packets
}

func TestPacketsNeedNoAllocation(t *testing.T) {
	for _, cfg := range []rcp.Config{{}, {Window: true}, {Timer: true}} {
		for _, drop := range []int{1, 3} {
			p := newPipe(t, cfg)
			for range 50 { // allocates the fence's slots and the rings' chunks
				p.move(drop)
			}
			require.Zero(t, testing.AllocsPerRun(100, func() { p.move(drop) }), "%+v", cfg)
		}
	}
}

func BenchmarkFence(b *testing.B) {
	for _, c := range []struct {
		name string
		drop int
	}{{"clean", 1}, {"a third lost", 3}} {
		b.Run(c.name, func(b *testing.B) {
			p := newPipe(b, rcp.Config{})
			packets := 0
			b.SetBytes(int64(len(p.text)))
			b.ReportAllocs()
			for b.Loop() {
				packets += p.move(c.drop)
			}
			b.ReportMetric(float64(packets)/b.Elapsed().Seconds(), "packets/s")
		})
	}
}
