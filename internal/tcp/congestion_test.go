package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// TestAlgorithmTable is the golden table of the algorithms. It runs each of them over the link of
// TestThroughputTable.
func TestAlgorithmTable(t *testing.T) {
	g := newTable(t, "algorithms.txt", "SACK peer, RTO min 1 ms, MTU 1400; loss is each way\n")
	for _, name := range Algorithms() {
		g.out += name + "\n" + tableHead
		for _, loss := range []float64{0, 0.01, 0.1} {
			for _, d := range []time.Duration{75e3, 10e6} {
				cfg := course()
				cfg.Recovery.Congestion = name
				g.row(direct(d, loss), cfg)
			}
		}
	}
	golden(t, g.name, g.out)
}

// TestEveryAlgorithmDelivers checks that every byte arrives with every congestion control
// algorithm, with and without SACK.
func TestEveryAlgorithmDelivers(t *testing.T) {
	for _, name := range Algorithms() {
		for _, plain := range []bool{false, true} {
			for seed := range uint64(fewer(6)) {
				cfg := course()
				cfg.Recovery.Congestion, cfg.OptionsOff, cfg.Recovery.Pacing = name, plain, seed%2 == 1
				w := newWorld(t, seed, wire{
					delay: 200 * time.Microsecond, jitter: 50 * time.Microsecond, bytesPerSec: 50e6,
					loss: 0.05, dup: 0.01, reorder: 0.02, merge: seed%3 == 0,
				}, cfg)
				w.verify = true
				a, b := w.connect()
				s := newStream(a, b, shorter(512<<10))
				require.True(t, w.transfer(time.Minute, s), "%s, seed %d: %+v", name, seed, a.Info())
				require.Equal(t, shorter(512<<10), s.read, name)
			}
		}
	}
}

// RFC 5681 §3.1: Tahoe's window after a fast retransmit is the loss window. The following segments
// leave by slow start: one, then two.
func TestTahoeRestartsSlowStart(t *testing.T) {
	s := flight(t, 10, fullOptions, Config{Knobs: Knobs{Recovery: Recovery{Congestion: "tahoe"}}})
	s.sack(1, 1001, 4001)
	s.collect()
	require.NotEmpty(t, s.out)
	assert.Equal(t, uint32(1), s.out[0].seq, "the fast retransmit")
	assert.Len(t, s.out, 1, "only the fast retransmit")
	i := s.c.Info()
	assert.Equal(t, i.SndMSS, i.SndCwnd)
	assert.Equal(t, 5*i.SndMSS, i.SndSsthresh, "half of the flight")
	assert.Equal(t, "loss", i.CAState)
	t.Log("# data from before the loss arrives: the window does not grow")
	for end := uint32(5001); end <= 10001; end += 1000 {
		s.sack(1, 1001, end)
	}
	assert.Equal(t, i.SndMSS, s.c.Info().SndCwnd, "RFC 5681 §3.1: nothing new is acknowledged")
	s.send(ACK, 1, 10001, 0)
	assert.Equal(t, 2*i.SndMSS, s.c.Info().SndCwnd)
}

// TestBBRNeedsNoLoss checks that BBR fills a path with a deep buffer and keeps the buffer empty.
func TestBBRNeedsNoLoss(t *testing.T) {
	cfg := course()
	cfg.Recovery.Congestion = "bbr"
	w := newWorld(t, 1, wire{delay: 10 * time.Millisecond, bytesPerSec: 10e6, merge: true}, cfg)
	a, b := w.connect()
	s := newStream(a, b, 1<<62)
	s.keepOpen = true
	w.transfer(time.Second, s)
	before := a.Info().BytesAcked
	w.transfer(2*time.Second, s)
	i := a.Info()
	rate := float64(i.BytesAcked-before) / 2
	t.Logf("%.2f MB/s, srtt %v, cwnd %d, pacing %d", rate/1e6, i.RTT, i.SndCwnd, i.PacingRate)
	assert.Greater(t, rate, 0.93*10e6*1360/1420)
	assert.Less(t, i.RTT, 30*time.Millisecond, "an empty path takes 20")
	assert.Zero(t, i.TotalRTO)
}

// TestBBRAtHeavyLoss compares the versions of BBR at 10 % random loss each way. Version 1 uses most
// of the remaining capacity. Version 3 uses a third of it, because it reduces its rate when more
// than 2 % of a round trip's data is lost, and it cannot tell random loss from congestion.
func TestBBRAtHeavyLoss(t *testing.T) {
	rates := map[string]float64{}
	for _, name := range []string{"bbr", "bbr3"} {
		cfg := course()
		cfg.Recovery.Congestion = name
		w := newWorld(t, 1, wire{
			delay: 2 * time.Millisecond, bytesPerSec: 5e6, loss: 0.1, merge: true,
		}, cfg)
		a, b := w.connect()
		s := newStream(a, b, 1<<62)
		s.keepOpen = true
		w.transfer(2*time.Second, s)
		i := a.Info()
		rates[name] = float64(i.BytesAcked) / 2
		t.Logf("%s: %.2f MB/s, %d of %d retransmitted, %d timeouts", name, rates[name]/1e6,
			i.TotalRetrans, i.DataSegsOut, i.TotalRTO)
	}
	left := 0.9 * 5e6 * 1348 / 1420
	assert.Greater(t, rates["bbr"], 0.75*left)
	assert.Less(t, rates["bbr3"], 0.5*left)
}

// TestSetCongestionKeepsTheWindow checks that a new algorithm starts with the state of the old one.
func TestSetCongestionKeepsTheWindow(t *testing.T) {
	w := newWorld(t, 1, wire{
		delay: 5 * time.Millisecond, bytesPerSec: 10e6, loss: 0.001, merge: true,
	}, course())
	a, b := w.connect()
	s := newStream(a, b, 1<<62)
	s.keepOpen = true
	w.transfer(time.Second, s)
	for _, name := range []string{"cubic", "newreno", "tahoe", "reno"} {
		before := a.Info()
		require.NoError(t, setCongestion(a, name))
		after := a.Info()
		assert.Equal(t, before.SndCwnd, after.SndCwnd, name)
		assert.Equal(t, before.SndSsthresh, after.SndSsthresh, name)
		w.transfer(200*time.Millisecond, s)
	}
	require.NoError(t, setCongestion(a, "bbr"))
	w.transfer(time.Second, s)
	before := a.Info()
	assert.Zero(t, before.SndSsthresh)
	require.NoError(t, setCongestion(a, "cubic"))
	after := a.Info()
	assert.Equal(t, before.SndCwnd, after.SndCwnd)
	assert.Equal(t, before.SndCwnd, after.SndSsthresh, "the new algorithm starts with bbr's estimate")
}

// half is an algorithm whose window is always half of the maximum.
type half struct{ window int }

func (h *half) OnAck(*congestion.Ack)   {}
func (h *half) OnLoss(*congestion.Loss) {}
func (h *half) OnExit(*congestion.Exit) {}
func (h *half) Cwnd() int               { return h.window }
func (h *half) Ssthresh() int           { return 0 }
func (h *half) PacingRate() int64       { return 0 }

// TestHostAlgorithms checks that a host accepts controllers from outside package congestion, for
// all connections or for one, and that they override built-in ones of the same name.
func TestHostAlgorithms(t *testing.T) {
	var made []int
	own := func(cfg congestion.Config) congestion.Controller {
		made = append(made, cfg.MSS)
		return &half{window: cfg.MaxWindow / 2}
	}
	cfg := course()
	cfg.Algorithms = map[string]congestion.Make{"half": own, "reno": own}
	cfg.Recovery.Congestion = "half"
	w := newWorld(t, 1, wire{delay: time.Millisecond}, cfg)
	a, b := w.connect()
	for _, c := range []*Conn{a, b} {
		i := c.Info()
		assert.Equal(t, "half", i.CongestionControl)
		assert.Equal(t, w.hosts[0].cfg.Recovery.InitialWindow*i.SndMSS, i.SndCwnd)
	}
	assert.Empty(t, made, "Info makes no controller")
	require.True(t, w.transfer(time.Minute, newStream(a, b, 1000)))
	i := a.Info()
	assert.Equal(t, w.hosts[0].cfg.Buffers.SendMax/2, i.SndCwnd)
	assert.Equal(t, []int{i.SndMSS}, made, "one controller for a connection that sends")

	require.NoError(t, setCongestion(a, "tahoe"))
	assert.Equal(t, "tahoe", a.Info().CongestionControl)
	require.NoError(t, setCongestion(a, "reno"))
	assert.Len(t, made, 2, "the host's own reno")
	s := newStream(a, b, 64<<10)
	require.True(t, w.transfer(time.Minute, s))

	err := setCongestion(a, "quarter")
	require.ErrorIs(t, err, ErrCongestion)
	assert.ErrorContains(t, err, "tahoe, half, reno")
	k := w.hosts[0].Knobs()
	k.Recovery.Congestion = "quarter"
	require.ErrorIs(t, w.hosts[0].SetKnobs(k), ErrCongestion)
	k.Recovery.Congestion = "half"
	assert.NoError(t, w.hosts[0].SetKnobs(k))
}

// RFC 5681 §3.1 (2): the acknowledgment that fills a hole also covers the data behind it, which
// left the network long before. Tahoe's window grows by one segment and does not jump to ssthresh.
// RFC 6582 §4.1: the duplicate acknowledgments that follow at the recovery point answer needless
// retransmissions. They are not a second loss.
func TestSlowStartAfterAHole(t *testing.T) {
	for _, recovery := range []string{"newreno", "gbn"} {
		s := flight(t, 20, Options{MSS: 1000}, Config{
			Knobs: Knobs{Recovery: Recovery{Congestion: "tahoe", Strategy: recovery}},
		})
		s.write(20000)
		for range 3 {
			s.send(ACK, 1, 1, 0)
		}
		s.collect()
		s.out = nil
		require.Equal(t, 1000, s.c.Info().SndCwnd, recovery)
		threshold := s.c.Info().SndSsthresh
		require.GreaterOrEqual(t, threshold, 10000, recovery)
		all := uint32(s.c.snd.Nxt - s.c.snd.iss)
		s.send(ACK, 1, all, 0)
		s.collect()
		require.NotEmpty(t, s.out, recovery)
		assert.Equal(t, "open", s.c.Info().CAState, recovery)
		assert.Equal(t, 2000, s.c.Info().SndCwnd, "one segment was retransmitted: %s", recovery)
		for range 4 {
			s.send(ACK, 1, all, 0)
		}
		assert.Equal(t, 2000, s.c.Info().SndCwnd, "echoes: %s", recovery)
		assert.Equal(t, threshold, s.c.Info().SndSsthresh, "echoes: %s", recovery)
	}
}

// TestInfoBeforeData checks that Info shows the controller's initial state before the connection
// sends, without creating the controller. A host's own script is called only when data leaves.
func TestInfoBeforeData(t *testing.T) {
	made := 0
	own := func(cfg congestion.Config) congestion.Controller {
		made++
		return congestion.Cubic{}.New(cfg)
	}
	for _, name := range append(congestion.Names(), "own") {
		for _, rec := range []Recovery{{}, {FixedWindow: 30_000, InitialWindow: 3, Pacing: true}} {
			rec.Congestion = name
			s := newScript(t, Config{
				Knobs:      Knobs{Recovery: rec},
				Algorithms: map[string]congestion.Make{"own": own},
			})
			s.connect()
			s.expect(SYN, 0, 0, 0)
			s.now = s.now.Add(20 * time.Millisecond)
			s.send(SYN|ACK, 0, 1, 0, fullOptions)
			s.collect()
			want := s.c.Info()
			assert.Equal(t, want, s.c.Info(), "%s: a second call returns the same", name)
			require.Nil(t, s.c.snd.rec.CC.Controller, name)
			require.Zero(t, made, name)
			s.write(1)
			s.collect()
			require.NotNil(t, s.c.snd.rec.CC.Controller, name)
			made = 0
			got := s.c.Info()
			assert.Equal(t, want.SndCwnd, got.SndCwnd, name)
			assert.Equal(t, want.SndSsthresh, got.SndSsthresh, name)
			assert.Equal(t, want.PacingRate, got.PacingRate, "%s %+v", name, rec)
		}
	}
}
