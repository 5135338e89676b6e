package sim_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// turns is an application that calls a function at each turn.
type turns func(now clock.Time, s *sim.Socket)

func (f turns) Turn(now clock.Time, s *sim.Socket) { f(now, s) }

// counter reads and counts all received datagrams.
type counter struct {
	n, bytes int
	last     clock.Time
}

func (c *counter) Turn(now clock.Time, s *sim.Socket) {
	var b [2048]byte
	for r, ok := s.Receive(b[:]); ok; r, ok = s.Receive(b[:]) {
		c.n++
		c.bytes += r.Len
		c.last = now
	}
}

// flood sends a number of datagrams as fast as the host takes them.
type flood struct {
	left, size int
	to         netip.AddrPort
	waits      int
	careless   bool // the application sends without calling Roomy first
}

func (f *flood) Turn(_ clock.Time, s *sim.Socket) {
	for f.left > 0 && (f.careless || s.Roomy()) {
		if s.Send(f.to, make([]byte, f.size)) != nil {
			break
		}
		f.left--
	}
	if f.left > 0 {
		f.waits++
	}
}

// A host whose queue holds only what its link can send blocks its applications, too. None of the 40
// MB is lost, and the last byte arrives at the time that follows from the rate.
func TestBackpressureOfUDP(t *testing.T) {
	for _, careless := range []bool{false, true} {
		wire := netem.Config{Rate: netem.BitsPerSecond(100e6), Delay: 5 * time.Millisecond}
		l, err := sim.NewLine(1, sim.LineConfig{Links: []sim.LinkConfig{{AB: wire, BA: wire}}})
		require.NoError(t, err)
		sim.End{Host: l.Left}.SetRoom(10)
		sink := &counter{}
		_, err = l.Right.BindUDP(9, sink)
		require.NoError(t, err)
		n, size := 40_000, 1000
		if !testenv.Long() {
			n = 8000
		}
		source := &flood{left: n, size: size, to: l.Address(9), careless: careless}
		begin := l.Now()
		_, err = l.Left.DialUDP(l.Address(9), source)
		require.NoError(t, err)
		assert.NotZero(t, source.left, "the host does not take all at once")
		l.Run(time.Minute)
		assert.Equal(t, n, sink.n)
		assert.Equal(t, n*size, sink.bytes)
		assert.NotZero(t, source.waits)
		want := time.Duration(n*(size+28)*8*10) + 5*time.Millisecond
		assert.Equal(t, want, sink.last.Sub(begin))
	}
}

// A host without a queue limit sends all datagrams at once. Datagrams that do not fit in the link's
// queue or in the receiver's buffer are dropped there, and counted.
func TestDatagramsBeyondTheQueueAreDropped(t *testing.T) {
	wire := netem.Config{Rate: netem.BitsPerSecond(1e9), Queue: netem.DropTail{Packets: 99}}
	l, err := sim.NewLine(1, sim.LineConfig{Links: []sim.LinkConfig{{AB: wire}}})
	require.NoError(t, err)
	sink := &counter{}
	_, err = l.Right.BindUDP(9, sink)
	require.NoError(t, err)
	lazy, err := l.Right.BindUDP(10, turns(func(clock.Time, *sim.Socket) {}))
	require.NoError(t, err)
	lazy.SetReceiveBuffer(10 * 256)
	for _, port := range []uint16{9, 10} {
		to := l.Address(port)
		_, err = l.Left.DialUDP(to, &flood{left: 500, size: 100, to: to})
		require.NoError(t, err)
		l.Run(time.Second)
	}
	assert.Equal(t, 100, sink.n, "one is being sent while 99 wait")
	assert.Equal(t, uint64(800), sim.End{Host: l.Left}.Out().Counters().QueueDropped)
	assert.Equal(t, udp.Info{Received: 10, ReceivedBytes: 1000, Dropped: 90}, lazy.UDP().Info())
}

// The host calls an application when it gets its socket, on datagrams, on ICMP errors (RFC 1122
// §4.1.3.3) and at its alarm.
func TestTurnsOfAUDPSocket(t *testing.T) {
	l, err := sim.NewLine(1, sim.LineConfig{Links: []sim.LinkConfig{
		{AB: netem.Config{Delay: time.Millisecond}, BA: netem.Config{Delay: time.Millisecond}},
	}})
	require.NoError(t, err)
	const ms = time.Millisecond
	var at []time.Duration
	begin := l.Now()
	app := turns(func(now clock.Time, s *sim.Socket) {
		at = append(at, now.Sub(begin))
		switch len(at) {
		case 1:
			s.Wake(now.Add(10 * ms))
		case 2:
			require.NoError(t, s.Send(netip.AddrPort{}, []byte("to a closed port")))
		case 3:
			assert.ErrorIs(t, s.UDP().TakeError(), udp.ErrRefused)
			assert.NoError(t, s.UDP().TakeError())
			s.Wake(now.Add(10 * ms))
			s.Wake(now.Add(20 * ms)) // replaces the earlier alarm, because a socket has only one
			s.Wake(now.Add(5 * ms))
		case 4:
			assert.ErrorIs(t, s.Send(netip.AddrPort{}, make([]byte, 1<<16)), stack.ErrTooBig)
		}
	})
	_, err = l.Left.DialUDP(l.Address(9), app)
	require.NoError(t, err)
	l.Run(time.Second)
	assert.Equal(t, []time.Duration{0, 10 * ms, 12 * ms, 17 * ms}, at)
	_, err = l.Left.BindUDP(7, app)
	require.NoError(t, err)
	_, err = l.Left.BindUDP(7, app)
	require.ErrorIs(t, err, udp.ErrPortInUse)
	_, err = l.Left.DialUDP(netip.MustParseAddrPort("0.0.0.0:7"), app)
	require.ErrorIs(t, err, udp.ErrAddress)
}
