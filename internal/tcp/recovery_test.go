package tcp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// flight establishes a connection with a round trip of 10 ms and a window of n segments of 1000
// bytes. All of them were sent 10 ms ago.
func flight(t *testing.T, n int, o Options, cfg Config) *script {
	t.Helper()
	cfg.Recovery.InitialWindow = n
	if cfg.Recovery.Congestion == "" {
		cfg.Recovery.Congestion = "reno" // the scripts assume its windows
	}
	s := newScript(t, cfg)
	s.accept(o)
	s.write(n * 1000)
	s.collect()
	require.Len(t, s.out, n)
	s.out = nil
	s.now = s.now.Add(10 * time.Millisecond)
	return s
}

func TestRFC2018_BlocksInOrderOfRecency(t *testing.T) {
	s := opened(t, Config{})
	blocks := func() (out [][2]uint32) {
		a := s.expect(ACK, 1, 1, 0)
		for _, b := range a.options.SACK[:a.options.SACKCount] {
			out = append(out, [2]uint32{b.Start - s.peer, b.End - s.peer})
		}
		return out
	}
	// §4: the first block is the range that changed last. The other ranges follow, the latest
	// first.
	s.send(ACK, 101, 1, 100)
	assert.Equal(t, [][2]uint32{{101, 201}}, blocks())
	s.send(ACK, 301, 1, 100)
	assert.Equal(t, [][2]uint32{{301, 401}, {101, 201}}, blocks())
	s.send(ACK, 501, 1, 100)
	assert.Equal(t, [][2]uint32{{501, 601}, {301, 401}, {101, 201}}, blocks())
	s.send(ACK, 401, 1, 100) // the segment joins two blocks
	assert.Equal(t, [][2]uint32{{301, 601}, {101, 201}}, blocks())
	s.send(ACK, 801, 1, 100)
	blocks()
	s.send(ACK, 1001, 1, 100)
	blocks()
	s.send(ACK, 1201, 1, 100)
	assert.Equal(t, [][2]uint32{{1201, 1301}, {1001, 1101}, {801, 901}, {301, 601}}, blocks())
	s.send(ACK, 1, 1, 100)
	a := s.expect(ACK, 1, 201, 0)
	assert.Equal(t, uint8(4), a.options.SACKCount)
	s.send(ACK, 201, 1, 1200)
	a = s.expect(ACK, 1, 1401, 0)
	assert.Equal(t, uint8(1), a.options.SACKCount, "RFC 2883 §4.2: the first repeated part, once")
	assert.Equal(t, s.peer+301, a.options.SACK[0].Start)
	assert.Equal(t, s.peer+601, a.options.SACK[0].End)
	assert.Equal(t, 1400, s.read(5000))
}

func TestRFC2883_DSACK(t *testing.T) {
	s := opened(t, Config{})
	s.send(ACK, 1, 1, 100)
	s.expect(ACK, 1, 101, 0)
	check := func(want ...uint32) {
		t.Helper()
		a := s.expect(ACK, 1, want[0], 0)
		require.Equal(t, len(want)/2, int(a.options.SACKCount))
		for i := range len(want) / 2 {
			assert.Equal(t, SACKBlock{s.peer + want[1+2*i], s.peer + want[2+2*i]}, a.options.SACK[i])
		}
		s.quiet()
	}
	s.send(ACK, 1, 1, 100) // §4.1.1: the whole segment is a duplicate
	check(101, 1, 101)
	s.send(ACK, 51, 1, 100) // §4.1.3: part of the segment is new
	check(151, 51, 101)
	s.send(ACK, 301, 1, 100)
	check(151, 301, 401)
	s.send(ACK, 301, 1, 100) // §4.1.2: a duplicate beyond a gap; the second block contains it
	check(151, 301, 401, 301, 401)
	s.send(ACK, 501, 1, 100)
	check(151, 501, 601, 301, 401)
}

// TestRFC8985_RACK checks the reaction to each acknowledgment (RFC 8985 §6.2) and the state kept
// between them (RFC 8985 §5.3).
func TestRFC8985_RACK(t *testing.T) {
	t.Run("one hole", func(t *testing.T) {
		s := flight(t, 10, fullOptions, Config{})
		s.sack(1, 1001, 2001)
		s.quiet() // wait a quarter of the minimum round trip for a reordered segment
		s.wait(2400 * time.Microsecond)
		s.quiet()
		s.wait(200 * time.Microsecond)
		s.expect(ACK, 1, 1, 1000)
		s.quiet()
		assert.Equal(t, "recovery", s.c.Info().CAState)
		s.sack(1, 1001, 3001)
		s.send(ACK, 1, 10001, 0)
		assert.Equal(t, "open", s.c.Info().CAState)
		assert.Equal(t, uint64(1), s.c.Info().TotalRetrans)
		assert.Equal(t, 5000, s.c.Info().SndCwnd, "halved, once")
	})
	t.Run("three segments above the hole prove a loss", func(t *testing.T) {
		s := flight(t, 10, fullOptions, Config{})
		s.sack(1, 1001, 4001)
		s.expect(ACK, 1, 1, 1000)
	})
	t.Run("a lost retransmission is detected", func(t *testing.T) {
		s := flight(t, 10, fullOptions, Config{})
		s.sack(1, 1001, 4001)
		s.expect(ACK, 1, 1, 1000)
		s.write(5000)
		s.now = s.now.Add(time.Millisecond)
		s.sack(1, 1001, 10001) // the other segments of the flight arrive
		s.collect()
		require.NotEmpty(t, s.out, "new data follows the retransmission")
		assert.Equal(t, uint32(10001), s.out[0].seq)
		s.out = nil
		s.now = s.now.Add(11 * time.Millisecond)
		s.sack(1, 1001, 11001) // a segment sent after the retransmission arrives before it
		s.expect(ACK, 1, 1, 1000)
		i := s.c.Info()
		assert.Equal(t, uint64(1), i.LostRetransmits)
		assert.Zero(t, i.TotalRTO)
		s.send(ACK, 1, 15001, 0)
		assert.Zero(t, s.c.Info().Unacked)
	})
	t.Run("reordering widens the window", func(t *testing.T) {
		s := flight(t, 10, fullOptions, Config{})
		s.sack(1, 1001, 2001)
		s.now = s.now.Add(time.Millisecond)
		s.send(ACK, 1, 2001, 0) // the first segment was only late
		assert.Equal(t, uint64(1), s.c.Info().ReordSeen)
		s.sack(2001, 3001, 7001)
		s.quiet() // now four segments above a hole do not prove a loss
		s.wait(3 * time.Millisecond)
		s.expect(ACK, 2001, 1, 1000)
	})
	t.Run("duplicates widen it more", func(t *testing.T) {
		s := flight(t, 10, fullOptions, Config{})
		s.sack(2001, 1, 1001)
		assert.Equal(t, uint64(1), s.c.Info().DSACKDups)
		s.sack(2001, 1, 1001)
		assert.Equal(t, uint64(2), s.c.Info().DSACKDups)
	})
}

func TestRFC6298_Timeout(t *testing.T) {
	s := flight(t, 4, Options{MSS: 1000}, Config{Retries: Retries{Data: 3}})
	start := s.now
	var at []time.Duration
	for s.c.State() == StateEstablished {
		s.wait(s.h.Deadline().Sub(s.now))
		s.collect()
		for _, g := range s.out {
			at = append(at, s.now.Sub(start).Round(10*time.Millisecond))
			assert.Equal(t, "ACK 1:1001(1000) ack 1", g.String(), "one segment, the first")
		}
		s.out = nil
	}
	assert.Equal(t, []time.Duration{190e6, 590e6, 1390e6}, at, "doubling")
	require.ErrorIs(t, s.c.Err(), ErrTimeout)
	assert.Equal(t, 4000, s.c.Tx().Len(), "only acknowledged data counts as delivered")
	i := s.c.Info()
	assert.Equal(t, uint64(3), i.TotalRTO)
	assert.Equal(t, 1000, i.SndCwnd)
	assert.Equal(t, 2000, i.SndSsthresh, "RFC 5681 §3.1: held while the same data times out")
	assert.Equal(t, uint64(0), i.BytesAcked)
}

func TestTimeoutThenSlowStart(t *testing.T) {
	for _, o := range []Options{fullOptions, {MSS: 1000}} {
		s := flight(t, 10, o, Config{})
		s.wait(400 * time.Millisecond)
		s.collect()
		s.out = nil
		s.now = s.now.Add(10 * time.Millisecond)
		acked, rounds := uint32(1), 0
		for n := 1; acked < 10001; n *= 2 {
			rounds++
			acked = min(acked+uint32(n)*1000, 10001)
			s.send(ACK, 1, acked, 0)
			s.collect()
			want := min(2*n, int(10001-acked)/1000)
			assert.Len(t, s.out, want, "SACK %v, round %d", o.SACKPermitted, rounds)
			s.out = nil
			s.now = s.now.Add(10 * time.Millisecond)
		}
		assert.Equal(t, "open", s.c.Info().CAState)
	}
}

func TestRFC6298_Karn(t *testing.T) {
	s := flight(t, 1, Options{MSS: 1000}, Config{})
	rtt := s.c.Info().RTT
	s.wait(3 * time.Second)
	s.collect()
	s.send(ACK, 1, 1001, 0)
	assert.Equal(t, rtt, s.c.Info().RTT, "no sample from a retransmitted segment")
	assert.Greater(t, s.c.Info().RTO, 200*time.Millisecond, "the backoff does not end")
	s.write(10)
	s.collect()
	s.now = s.now.Add(10 * time.Millisecond)
	s.send(ACK, 1, 1011, 0)
	assert.Equal(t, 200*time.Millisecond, s.c.Info().RTO)
}

func TestRFC6582_NewReno(t *testing.T) {
	s := flight(t, 10, Options{MSS: 1000}, Config{})
	s.write(10000)
	t.Log("# RFC 3042: each of the first two duplicates releases one new segment")
	for i := range uint32(2) {
		s.send(ACK, 1, 1, 0)
		s.expect(ACK, 10001+1000*i, 1, 1000)
		s.quiet()
	}
	t.Log("# the third duplicate proves a loss")
	s.send(ACK, 1, 1, 0)
	s.expect(ACK, 1, 1, 1000)
	s.quiet()
	assert.Equal(t, "recovery", s.c.Info().CAState)
	for range 5 {
		s.send(ACK, 1, 1, 0)
	}
	s.collect()
	s.out = nil
	t.Log("# a partial acknowledgment shows the next hole")
	s.send(ACK, 1, 4001, 0)
	s.expect(ACK, 4001, 1, 1000)
	assert.Equal(t, "recovery", s.c.Info().CAState)
	s.collect()
	s.out = nil
	t.Log("# an acknowledgment past the recovery point ends recovery")
	s.send(ACK, 1, 12001, 0)
	assert.Equal(t, "open", s.c.Info().CAState)
	assert.Zero(t, s.c.Info().TotalRTO)
	assert.LessOrEqual(t, s.c.Info().SndCwnd, 6000)
}

func TestDuplicatesForAPeerWithoutSACK(t *testing.T) {
	s := newScript(t, Config{})
	s.accept(Options{})
	g := Segment{
		Tuple: s.tuple, Header: Header{Seq: s.peer + 1001, Ack: s.iss + 1, Flags: ACK, Window: 65535},
		Len: 5000, Count: 5, Payload: [][]byte{pattern[1000:6000]},
	}
	s.h.Input(s.now, &g)
	for range 5 {
		s.expect(ACK, 1, 1, 0) // RFC 5681 §4.2: one acknowledgment for each segment of the train
	}
	s.quiet()
	s.send(ACK, 1, 1, 1000)
	s.expect(ACK, 1, 6001, 0)
	assert.Equal(t, 6000, s.read(10000))
}

func TestRFC9937_PRR(t *testing.T) {
	s := flight(t, 20, fullOptions, Config{Buffers: Buffers{Send: 1 << 20}})
	s.write(40000)
	s.sack(1, 1001, 4001)
	s.expect(ACK, 1, 1, 1000)
	sent := 1
	for i := range uint32(16) {
		s.now = s.now.Add(100 * time.Microsecond)
		s.sack(1, 1001, 5001+1000*i)
		s.collect()
		assert.LessOrEqual(t, len(s.out), 1, "no bursts")
		sent += len(s.out)
		s.out = nil
	}
	assert.InDelta(t, 10, sent, 2, "half of the data that arrived")
	s.send(ACK, 1, 20001, 0)
	assert.InDelta(t, 10000, s.c.Info().SndCwnd, 0, "the window ends at ssthresh")
}

func TestRFC2018_8_Reneging(t *testing.T) {
	s := flight(t, 5, fullOptions, Config{})
	s.sack(1, 1001, 3001)
	s.wait(5 * time.Millisecond)
	s.collect()
	s.out = nil
	t.Log("# the peer has discarded the reported data: it acknowledges only the hole")
	s.send(ACK, 1, 1001, 0)
	s.wait(5 * time.Second)
	s.collect()
	require.NotEmpty(t, s.out)
	seen := false
	for _, g := range s.out {
		seen = seen || g.seq == 1001
	}
	assert.True(t, seen, "the sender retransmits the discarded data after the timeout")
}

func TestInvalidSACKBlocks(t *testing.T) {
	s := flight(t, 10, fullOptions, Config{})
	s.sack(1, 5001, 20001)            // the block ends beyond SND.NXT
	s.sack(1, 5001, 5001)             // the block is empty
	s.sack(1, 5001, 4001)             // the block ends before it starts
	s.sack(1, ^uint32(90000), 4001)   // the block is far below SND.UNA
	s.sack(4001, 1, 3001, 500, 600)   // the first block is below the acknowledgment
	s.sack(4001, 3001, 6001)          // the block begins below the acknowledgment
	assert.Zero(t, s.c.Info().Sacked) // none of these blocks counts
	s.sack(4001, 5500, 8500)          // a block counts only whole segments
	assert.Equal(t, 2, s.c.Info().Sacked)
	s.send(ACK, 1, 4501, 0) // the acknowledgment ends within a segment
	assert.Equal(t, uint64(4500), s.c.Info().BytesAcked)
	s.send(ACK, 1, 10001, 0)
	assert.Zero(t, s.c.Info().Unacked)
	assert.Zero(t, s.c.snd.rec.Pipe())
}

func TestACKStormCostsNothing(t *testing.T) {
	s := opened(t, Config{})
	for range 60000 {
		s.send(ACK, 1, 1, 0)
	}
	s.quiet()
	answered := 0
	for i := range uint32(60000) {
		s.send(ACK, ^(100 + i%50), 1, 0) // segments outside the window get rate-limited answers
		s.collect()
		answered += len(s.out)
		s.out = nil
	}
	assert.Equal(t, 1, answered)
	assert.Equal(t, StateEstablished, s.c.State())
}

func TestCwndGrowsOnlyWhenUsed(t *testing.T) {
	s := opened(t, Config{})
	cwnd := s.c.Info().SndCwnd
	una := uint32(1)
	for range 500 {
		s.write(100)
		s.collect()
		s.out = nil
		una += 100
		s.now = s.now.Add(10 * time.Millisecond)
		s.send(ACK, 1, una, 0)
	}
	assert.Equal(t, cwnd, s.c.Info().SndCwnd, "the window does not grow if the application sends little")
	assert.Equal(t, LimitApp.String(), s.c.Info().Limited)
}

func TestProbeAndInfo(t *testing.T) {
	s := opened(t, Config{})
	var got []Info
	s.c.SetProbe(func(p *Info) { got = append(got, *p) })
	s.write(5000)
	s.collect()
	s.out = nil
	s.now = s.now.Add(10 * time.Millisecond)
	s.send(ACK, 1, 5001, 0)
	require.NotEmpty(t, got)
	last := got[len(got)-1]
	assert.Equal(t, uint64(5000), last.Una)
	assert.Equal(t, uint64(5000), last.DeliveredBytes)
	assert.Equal(t, s.now, last.Time)
	assert.Equal(t, "open", last.CAState)
	assert.InDelta(t, 4_000_000, last.DeliveryRate, 8, "5000 bytes in 10 ms")
	s.send(FIN|ACK, 1, 5001, 0)
	assert.Equal(t, StateCloseWait, got[len(got)-1].State)
	i := s.c.Info()
	assert.Equal(t, "cubic", i.CongestionControl)
	assert.Equal(t, uint64(5), i.DataSegsOut)
	assert.Equal(t, uint64(5000), i.BytesSent)
	s.c.SetProbe(nil)
}

func TestSetCongestion(t *testing.T) {
	s := opened(t, Config{})
	require.Error(t, setCongestion(s.c, "vegas"))
	require.NoError(t, setCongestion(s.c, "none"))
	s.write(100000)
	s.collect()
	assert.Len(t, s.out, 65, "only the peer's window counts")
	require.NoError(t, setCongestion(s.c, "fixed"))
	assert.Equal(t, "fixed", s.c.Info().CongestionControl)
}

const tableHead = "loss   rtt       MB/s  of bound  RTOs  probes  lost again  ACKs a segment\n"

// TestThroughputTable is the golden table of one flow over a virtual link: loss each way by round
// trip, in MB/s, with the counters that explain it.
func TestThroughputTable(t *testing.T) {
	g := newTable(t, "throughput.txt",
		"SACK peer, CUBIC, RTO min 1 ms, MTU 1400; loss is each way\n"+tableHead)
	for _, loss := range []float64{0, 0.001, 0.01, 0.02, 0.05, 0.1} {
		for _, d := range []time.Duration{75e3, 150e3, 1e6, 10e6} {
			g.row(direct(d, loss), course())
		}
	}
	g.out += "the same, but what arrives within 60µs is taken together\n"
	for _, loss := range []float64{0, 0.001, 0.01, 0.02, 0.05, 0.1} {
		g.row(lossyTrains(loss), course())
	}
	plain := course()
	plain.OptionsOff = true
	g.out += "plain peer\n"
	for _, loss := range []float64{0, 0.02, 0.1} {
		g.row(direct(75*time.Microsecond, loss), plain)
	}
	golden(t, g.name, g.out)
}

func direct(delay time.Duration, loss float64) wire {
	return wire{delay: delay, loss: loss, merge: true, bytesPerSec: 500e6}
}

// table is a golden table that is compared row by row.
type table struct {
	t         *testing.T
	name, out string
	known     []string // the golden file's lines
}

func newTable(t *testing.T, name, head string) *table {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return &table{t, name, head, strings.Split(string(text), "\n")}
}

// row adds the row of one link. Unless the long variants run, rows in which more than 5 MB move
// come from the golden file. Together the others take a tenth of the time.
func (g *table) row(wi wire, cfg Config) {
	g.t.Helper()
	duration := min(max(200*wi.delay, 100*time.Millisecond), time.Second)
	if at := strings.Count(g.out, "\n"); !testenv.Long() && !*update && at < len(g.known) {
		var loss, rate float64
		var rtt string
		_, err := fmt.Sscan(g.known[at], &loss, &rtt, &rate)
		if err == nil && rate*duration.Seconds() > 5 {
			g.out += g.known[at] + "\n"
			return
		}
	}
	g.out += tableRow(g.t, wi, cfg, duration) + "\n"
}

func tableRow(t *testing.T, wi wire, cfg Config, duration time.Duration) string {
	t.Helper()
	w, loss, delay := newWorld(t, 11, wi, cfg), wi.loss, wi.delay
	a, b := w.connect()
	w.segs = [2]int{}
	s := newStream(a, b, 1<<62)
	s.keepOpen = true
	start := w.now
	w.transfer(duration, s)
	i := a.Info()
	rate := float64(i.BytesAcked) / w.now.Sub(start).Seconds()
	bound := "-"
	if loss > 0 {
		// Mathis: 1.31/sqrt(p) segments per round trip.
		m := 1.31 / sqrt(loss) * 1360 / (2 * delay).Seconds()
		bound = fmt.Sprintf("%.2f", rate/min(m, 500e6))
	}
	return fmt.Sprintf("%-6v %-8v %6.1f  %8s  %4d  %6d  %10d  %14.2f", loss, 2*delay, rate/1e6,
		bound, i.TotalRTO, i.TailProbes, i.LostRetransmits, float64(w.segs[1])/float64(w.segs[0]))
}

func sqrt(x float64) float64 {
	r := 1.0
	for range 60 {
		r = (r + x/r) / 2
	}
	return r
}
