package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// recorder is a controller that records its calls.
type recorder struct {
	congestion.Controller
	acks     []congestion.Ack
	gone     []congestion.LostSegment
	restarts []congestion.Restart
}

func (h *recorder) OnAck(a *congestion.Ack) {
	h.acks = append(h.acks, *a)
	h.Controller.OnAck(a)
}

func (h *recorder) OnSegmentLost(l *congestion.LostSegment) { h.gone = append(h.gone, *l) }

func (h *recorder) OnRestart(r *congestion.Restart) { h.restarts = append(h.restarts, *r) }

func (h *recorder) last() congestion.Ack { return h.acks[len(h.acks)-1] }

// clocked is a controller with a timer that also observes the segments sent.
type clocked struct {
	*recorder
	at     clock.Time
	again  time.Duration // the interval until the next expiry; 0: no timer
	timers []congestion.Timer
	sent   []congestion.Sent
}

func (c *clocked) Deadline() clock.Time { return c.at }

func (c *clocked) OnTimer(t congestion.Timer) {
	c.timers = append(c.timers, t)
	if c.at = clock.Never; c.again > 0 {
		c.at = t.Now.Add(c.again)
	}
}

func (c *clocked) OnSend(s congestion.Sent) { c.sent = append(c.sent, s) }

// begin gives a script's connection its controller before it sends anything.
func (s *script) begin() {
	if s.c.snd.rec.CC.Controller == nil {
		s.c.snd.rec.Begin(s.c.snd.congestion(s.now))
	}
}

// recordCalls wraps a script's controller in a recorder.
func recordCalls(s *script) *recorder {
	s.begin()
	h := &recorder{Controller: s.c.snd.rec.CC.Controller}
	s.c.snd.rec.CC.Controller = h
	return h
}

// govern gives a script's connection a controller with a timer.
func (s *script) govern(cc congestion.Controller) {
	s.h.recoveries.Algorithms = map[string]congestion.Make{
		"govern": func(congestion.Config) congestion.Controller { return cc },
	}
	require.NoError(s.t, setCongestion(s.c, "govern"))
}

// setCongestion changes a connection's algorithm.
func setCongestion(c *Conn, name string) error {
	o := c.Sockopts()
	o.Congestion = name
	return c.SetSockopts(c.host.now, o)
}

func (s *script) clear() { s.collect(); s.out = nil }

func (s *script) pass(d time.Duration) { s.now = s.now.Add(d) }

// draft-ietf-ccwg-bbr §4.1: the delivery rate is the data delivered since a segment was sent,
// divided by the longer of the sending and the acknowledging interval.
func TestDeliveryRate(t *testing.T) {
	s := flight(t, 10, fullOptions, Config{})
	h := recordCalls(s)
	s.send(ACK, 1, 5001, 0)
	assert.InDelta(t, 500e3, h.last().Rate, 1, "5000 bytes in 10 ms")
	assert.Equal(t, uint64(0), h.last().PriorDelivered)
	assert.Equal(t, 10000, h.last().TxInFlight+5000, "the fifth of ten")
	s.pass(10 * time.Millisecond)
	s.send(ACK, 1, 10001, 0)
	assert.InDelta(t, 500e3, h.last().Rate, 1, "10000 bytes in 20 ms: the rest was in flight throughout")

	t.Log("# compressed acknowledgments do not raise the rate")
	s.clear()
	for range 4 {
		s.write(1000)
		s.clear()
		s.pass(5 * time.Millisecond)
	}
	s.pass(5 * time.Millisecond)
	s.send(ACK, 1, 11001, 0)
	s.pass(100 * time.Microsecond)
	s.send(ACK, 1, 14001, 0)
	assert.Less(t, h.last().Rate, int64(300e3), "the segments took 15 ms to send")
}

// draft-ietf-ccwg-bbr §4.1.1.3: while the application has nothing to send, samples are marked as
// limited by it, until the data that was in flight then has been delivered.
func TestApplicationLimitedRate(t *testing.T) {
	s := flight(t, 4, fullOptions, Config{Knobs: Knobs{Recovery: Recovery{InitialWindow: 4}}})
	h := recordCalls(s)
	s.send(ACK, 1, 4001, 0)
	assert.True(t, h.last().AppLimited, "the application had nothing to send before it")
	s.write(1000)
	s.clear()
	s.pass(time.Millisecond)
	s.write(1000) // the application had nothing to send before this
	s.clear()
	s.pass(10 * time.Millisecond)
	s.send(ACK, 1, 6001, 0)
	assert.True(t, h.last().AppLimited)
	s.write(40000)
	s.clear()
	una := uint32(6001)
	for range 6 {
		s.pass(10 * time.Millisecond)
		una += 2000
		s.send(ACK, 1, una, 0)
		s.clear()
	}
	assert.False(t, h.last().AppLimited, "all earlier data has been delivered")
}

// TestOnSegmentLost checks that the controller gets each lost segment with the data in flight when
// it was sent and the data lost since.
func TestOnSegmentLost(t *testing.T) {
	s := flight(t, 10, fullOptions, Config{})
	h := recordCalls(s)
	s.sack(1, 2001, 6001)
	require.Len(t, h.gone, 2)
	for i, l := range h.gone {
		assert.Equal(t, 1000*(i+1), l.TxInFlight)
		assert.Equal(t, 1000*(i+1), l.LostSince)
		assert.Equal(t, 1000, l.Size)
		assert.Equal(t, s.c.snd.iss+1+uint64(1000*i), l.Seq)
	}
	assert.Equal(t, 2000, h.last().Lost)
	assert.Equal(t, 6000, h.last().TxInFlight, "the data in flight when the newest arrived segment was sent")
	assert.Equal(t, 2000, h.last().LostSince)
}

// TestTimedController checks that a controller's timer expires on time, even on an idle connection,
// but not after another controller has replaced it or the connection has closed.
func TestTimedController(t *testing.T) {
	s := flight(t, 4, fullOptions, Config{})
	c := &clocked{recorder: recordCalls(s), at: s.now.Add(5 * time.Millisecond), again: 20 * time.Millisecond}
	s.govern(c)
	s.send(ACK, 1, 2001, 0) // the deadline takes effect with the next event
	began := s.now
	s.wait(50 * time.Millisecond)
	require.Len(t, c.timers, 3)
	assert.Equal(t, []time.Duration{5e6, 25e6, 45e6}, []time.Duration{
		c.timers[0].Now.Sub(began), c.timers[1].Now.Sub(began), c.timers[2].Now.Sub(began),
	})
	assert.Equal(t, []any{2000, 1000, uint64(2000)},
		[]any{c.timers[0].InFlight, c.timers[0].MSS, c.timers[0].TotalDelivered})
	s.send(ACK, 1, 4001, 0)
	s.wait(10 * time.Second)
	n := len(c.timers)
	assert.Greater(t, n, 490, "no data is in flight, and its memory is freed")
	require.NoError(t, setCongestion(s.c, "cubic"))
	s.wait(time.Second)
	assert.Len(t, c.timers, n)
	s.govern(c)
	c.at = s.now.Add(time.Millisecond)
	s.send(RST, 1, 0, 0)
	s.wait(time.Second)
	assert.Len(t, c.timers, n)
}

// TestOnSend checks that the controller gets new data and retransmissions with their sequence
// numbers.
func TestOnSend(t *testing.T) {
	s := flight(t, 10, fullOptions, Config{})
	c := &clocked{recorder: recordCalls(s)}
	s.govern(c)
	s.write(3000)
	s.send(ACK, 1, 1001, 0)
	s.clear()
	require.NotEmpty(t, c.sent)
	first, bytes := c.sent[0].Seq, 0
	assert.Equal(t, s.c.snd.Una+9000, first)
	for _, e := range c.sent {
		assert.Equal(t, first+uint64(bytes), e.Seq)
		assert.False(t, e.Again)
		bytes += e.Size
	}
	last := c.sent[len(c.sent)-1]
	assert.Equal(t, []int{2000, 11000, 1000}, []int{bytes, last.InFlight, last.MSS})
	c.sent = nil
	s.wait(2 * time.Second) // a tail loss probe with the third segment, and timeouts
	require.Greater(t, len(c.sent), 1)
	assert.Equal(t, []any{first + 2000, false}, []any{c.sent[0].Seq, c.sent[0].Again})
	for _, e := range c.sent[1:] {
		assert.Equal(t, []any{first - 9000, true, 1}, []any{e.Seq, e.Again, e.Segments})
	}
}

// RFC 7323: an acknowledgment's one-way delay is the receiver's timestamp minus the echoed
// timestamp, whatever the clocks' offsets.
func TestRFC7323_OneWayDelay(t *testing.T) {
	o := fullOptions
	o.HasTimestamps, o.TSVal = true, 1<<32-7
	s := newScript(t, Config{})
	s.listen(1)
	s.send(SYN, 0, 0, 0, o)
	s.expect(SYN|ACK, 0, 1, 0)
	s.send(ACK, 1, 1, 0, Options{HasTimestamps: true, TSVal: o.TSVal})
	s.c, _ = s.l.Accept()
	s.write(4000)
	s.clear()
	h := recordCalls(s)
	var transit []uint32
	stamp := o.TSVal
	for i := range uint32(4) {
		echo := s.c.stamps.at(s.now) - 10
		s.send(ACK, 1, 1001+1000*i, 0, Options{
			HasTimestamps: true, TSVal: stamp + 10 + 10*i + i*i, TSEcr: echo,
		})
		require.True(t, h.last().Stamped)
		transit = append(transit, h.last().Transit-h.acks[0].Transit)
		s.pass(10 * time.Millisecond)
	}
	assert.Equal(t, []uint32{0, 1, 4, 9}, transit)
}

// RFC 5681 §4.1: the controller restarts before the first data after an idle period.
func TestOnRestart(t *testing.T) {
	s := flight(t, 10, fullOptions, Config{})
	h := recordCalls(s)
	s.send(ACK, 1, 10001, 0)
	assert.Empty(t, h.restarts, "no restart before the first data of a connection")
	s.pass(time.Minute)
	s.write(1000)
	s.clear()
	require.Len(t, h.restarts, 1)
	assert.Equal(t, time.Minute+10*time.Millisecond, h.restarts[0].Idle)
	assert.Equal(t, s.c.snd.rec.RTT.RTO, h.restarts[0].RTO)
	s.write(1000)
	s.clear()
	assert.Len(t, h.restarts, 1, "one restart")
}

// TestRFC5681_IdleConnection checks RFC 5681 §4.1 with the whole engine.
func TestRFC5681_IdleConnection(t *testing.T) {
	for _, name := range []string{"reno", "newreno", "tahoe", "cubic"} {
		cfg := course()
		cfg.Recovery.Congestion = name
		w := newWorld(t, 1, wire{delay: time.Millisecond, merge: true}, cfg)
		a, b := w.connect()
		s := newStream(a, b, 1<<20)
		s.keepOpen = true
		require.True(t, w.transfer(time.Minute, s))
		i := a.Info()
		require.Greater(t, i.SndCwnd, 20*i.SndMSS)
		w.run(10 * time.Second)
		s.size += 1000
		require.True(t, w.transfer(time.Minute, s))
		assert.Equal(t, 10*i.SndMSS, a.Info().SndCwnd, name)
		assert.GreaterOrEqual(t, a.Info().SndSsthresh, i.SndCwnd/4*3, "ssthresh keeps the estimate: %s", name)
	}
}
