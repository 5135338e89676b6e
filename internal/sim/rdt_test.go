package sim_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// flowEnd is one end of an rdt flow.
type flowEnd interface {
	Input(now clock.Time, b []byte)
	Output(now clock.Time, b []byte) ([]byte, bool)
	Deadline() clock.Time
	Advance(now clock.Time)
}

// flowPeer connects an end of a flow to a UDP socket.
type flowPeer struct {
	t      *testing.T
	end    flowEnd
	remote netip.AddrPort
	buf    []byte
}

// Turn implements sim.DatagramApp. It delivers received packets to the engine, and sends the
// engine's packets while the host accepts them.
func (p *flowPeer) Turn(now clock.Time, s *sim.Socket) {
	for r, ok := s.Receive(p.buf[:cap(p.buf)]); ok; r, ok = s.Receive(p.buf[:cap(p.buf)]) {
		p.remote = r.From
		p.end.Input(now, p.buf[:r.Len])
	}
	if p.end.Deadline().Due(now) {
		p.end.Advance(now)
	}
	for p.remote.IsValid() && s.Roomy() {
		b, ok := p.end.Output(now, p.buf[:0])
		if !ok {
			break
		}
		require.NoError(p.t, s.Send(p.remote, b))
	}
	s.Wake(p.end.Deadline())
}

// flow fetches objects over a router. It returns the world's digest and the time taken.
func flow(t *testing.T, seed uint64, cfg rdt.Config, c netem.Config) (hash uint64, d time.Duration) {
	t.Helper()
	l, err := sim.NewLine(seed, sim.LineConfig{Routers: 1, Links: []sim.LinkConfig{{AB: c, BA: c}}})
	require.NoError(t, err)
	var objects [][]byte
	var wanted []uint16
	for i := range 8 {
		objects = append(objects, numbered(i)[:60_000>>(i%2*3)])
		wanted = append(wanted, uint16(i))
	}
	s, err := rdt.NewSender(cfg, objects)
	require.NoError(t, err)
	r, err := rdt.NewReceiver(l.Now(), cfg, wanted...)
	require.NoError(t, err)
	to := l.Address(4350)
	_, err = l.Right.BindUDP(4350, &flowPeer{t: t, end: s, buf: make([]byte, 2048)})
	require.NoError(t, err)
	_, err = l.Left.DialUDP(to, &flowPeer{t: t, end: r, remote: to, buf: make([]byte, 2048)})
	require.NoError(t, err)
	over := func() bool { return s.Done() && r.Done() }
	require.True(t, l.RunUntil(5*time.Minute, over))
	require.NoError(t, s.Err())
	for range objects {
		got, ok := r.Next()
		require.True(t, ok)
		require.NoError(t, got.Err)
		require.True(t, bytes.Equal(objects[got.Stream], got.Data), "object %d", got.Stream)
	}
	assert.Zero(t, l.Left.Stack().Fragments().Fragments, "a packet fits a link's MTU")
	return l.Hash(), r.Info().Took
}

// Objects cross a router over UDP, on links with the faults of founding document 003. The same seed
// sends the same packets at the same times.
func TestObjectsOverUDP(t *testing.T) {
	bad := netem.Config{
		Delay: 5 * time.Millisecond, Jitter: netem.UniformJitter(4 * time.Millisecond),
		Overtaking: true, Duplicate: .05, Corrupt: netem.Corrupt{Share: .05},
		Loss: netem.UniformLoss(.05),
	}
	for _, cfg := range []rdt.Config{
		{}, {Selective: true, Adaptive: true, Interleave: true, Compress: true},
	} {
		one, _ := flow(t, 1, cfg, bad)
		again, _ := flow(t, 1, cfg, bad)
		other, _ := flow(t, 2, cfg, bad)
		assert.Equal(t, one, again)
		assert.NotEqual(t, one, other)
	}
}

// Without loss, the request takes half a round trip over two links. Each window takes a round trip,
// except that the last takes half. The 216 packets fill four windows of 64.
func TestObjectsOverUDPTakeRoundTrips(t *testing.T) {
	for _, delay := range []time.Duration{time.Millisecond, 50 * time.Millisecond} {
		_, took := flow(t, 1, rdt.Config{Window: 64}, netem.Config{Delay: delay})
		assert.Equal(t, (2+3*4+2)*delay, took)
	}
}
