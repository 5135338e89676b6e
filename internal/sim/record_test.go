package sim_test

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// lossyLine returns a line whose two links lose 2 % of the packets to the right.
func lossyLine(tb testing.TB, seed uint64) *sim.Line {
	tb.Helper()
	l, err := sim.NewLine(seed, sim.LineConfig{Routers: 1, Links: []sim.LinkConfig{{
		AB: netem.Config{
			Rate: netem.BitsPerSecond(20e6), Delay: 5 * time.Millisecond,
			Queue: netem.DropTail{Packets: 40}, Loss: netem.UniformLoss(0.02),
		},
		BA: netem.Config{Delay: 5 * time.Millisecond},
	}}})
	require.NoError(tb, err)
	return l
}

// Two equal runs have the same hash. Another seed or another byte changes it.
func TestHash(t *testing.T) {
	run := func(seed uint64, size uint64) uint64 {
		l := lossyLine(t, seed)
		over, err := l.Bulk(&sim.Bulk{Send: size}, &sim.Bulk{}, 80, time.Minute)
		require.NoError(t, err)
		require.True(t, over)
		return l.Hash()
	}
	hash := run(3, 200_000)
	assert.Equal(t, hash, run(3, 200_000))
	assert.NotEqual(t, hash, run(4, 200_000), "another seed has other sequence numbers")
	assert.NotEqual(t, hash, run(3, 200_001))
}

// sampled is an application whose connection is sampled from its first turn on.
type sampled struct {
	sim.Bulk
	got []tcp.Info
}

func (s *sampled) Turn(now clock.Time, c *sim.Conn, e tcp.Event) {
	if s.got == nil {
		s.got = []tcp.Info{}
		c.SetProbe(func(p *tcp.Info) { s.got = append(s.got, *p) })
	}
	s.Bulk.Turn(now, c, e)
}

func TestSamplesOfAConnection(t *testing.T) {
	l := lossyLine(t, 5)
	left, right := &sampled{Bulk: sim.Bulk{Send: 1_000_000}}, &sim.Bulk{}
	_, err := l.Right.Listen(80, 1, func(*sim.Conn) sim.App { return right })
	require.NoError(t, err)
	c, err := l.Left.Dial(l.Address(80), left)
	require.NoError(t, err)
	require.True(t, l.RunUntil(time.Minute, func() bool { return left.Over && right.Over }))

	require.Greater(t, len(left.got), 500)
	seen := map[string]bool{}
	var last tcp.Info
	for i := range left.got {
		s := &left.got[i]
		require.GreaterOrEqual(t, s.Time, last.Time)
		require.GreaterOrEqual(t, s.BytesAcked, last.BytesAcked)
		flight := s.Unacked - s.Sacked - s.Lost
		require.GreaterOrEqual(t, flight, s.Retrans)
		seen[s.CAState] = true
		seen["sacked"] = seen["sacked"] || s.Sacked > 0
		seen["lost"] = seen["lost"] || s.Lost > 0
		seen["retrans"] = seen["retrans"] || s.Retrans > 0
		last = *s
	}
	assert.Subset(t, seen, map[string]bool{
		"open": true, "recovery": true, "sacked": true, "lost": true, "retrans": true,
	})
	info := c.TCP().Info()
	assert.EqualValues(t, 1_000_000, last.BytesAcked)
	assert.Equal(t, info.BytesSent, last.BytesSent)
	assert.Equal(t, info.TotalRetrans, last.TotalRetrans)
	assert.Positive(t, last.TotalRetrans)
	assert.Equal(t, "cubic", last.CongestionControl)
	assert.Equal(t, 1348, last.SndMSS)
}

// The traces of the two ends match: data that arrives was sent, lost data is retransmitted, and the
// right end acknowledges all of it.
func TestTraceOfSegments(t *testing.T) {
	const size = 1_000_000
	l := lossyLine(t, 6)
	var left, right []sim.Segment
	keep := func(to *[]sim.Segment) func(*sim.Segment) {
		return func(s *sim.Segment) {
			kept := *s
			kept.SACK = slices.Clone(s.SACK)
			*to = append(*to, kept)
		}
	}
	l.Left.Trace(keep(&left))
	l.Right.Trace(keep(&right))
	l.Routers[0].Trace(func(*sim.Segment) { t.Error("the router has no connections") })
	app := &sim.Bulk{Send: size}
	over, err := l.Bulk(app, &sim.Bulk{}, 80, time.Minute)
	require.NoError(t, err)
	require.True(t, over)

	type segment struct {
		seq uint64
		len int
	}
	sent, again := map[segment]int{}, 0
	high, acked := uint64(0), uint64(0)
	sacks := 0
	for i := range left {
		s := &left[i]
		if !s.Sent {
			require.GreaterOrEqual(t, s.Ack, acked, "the path does not reorder")
			acked = s.Ack
			for _, r := range s.SACK {
				sacks++
				require.Less(t, r[0], r[1])
				require.LessOrEqual(t, r[1], high)
			}
			continue
		}
		require.Equal(t, s.Seq < high, s.Repeats && s.Length > 0, "%+v", s)
		high = max(high, s.Seq+uint64(s.Length))
		if s.Length > 0 {
			sent[segment{s.Seq, s.Length}]++
			if s.Repeats {
				again++
			}
		}
		if s.Scale < 0 { // only a SYN has a window scale
			require.Greater(t, s.Window, 1<<16, "scaled")
		}
	}
	assert.EqualValues(t, size, high)
	assert.EqualValues(t, size+1, acked, "with the FIN")
	assert.Positive(t, sacks)
	assert.Equal(t, "S", left[0].Flags)
	assert.EqualValues(t, 0, left[0].Seq)

	arrived := 0
	for i := range right {
		if s := &right[i]; !s.Sent && s.Length > 0 {
			arrived++
			require.NotZero(t, sent[segment{s.Seq, s.Length}], "%+v", s)
		}
	}
	total := 0
	for _, n := range sent {
		total += n
	}
	lost := 0
	for _, e := range []sim.End{{Host: l.Left}, {Host: l.Routers[0], Iface: 1}} {
		c := e.Out().Counters()
		lost += int(c.Lost + c.QueueDropped)
	}
	assert.Equal(t, total-lost, arrived)
	assert.GreaterOrEqual(t, again, lost)
}

// A second connection between the same ends starts at offset 0 again. Corrupted segments are not
// recorded as arrivals.
func TestTraceOfCorruptionAndASecondConnection(t *testing.T) {
	l, err := sim.NewLine(1, sim.LineConfig{Links: []sim.LinkConfig{{
		AB: netem.Config{
			Delay:   time.Millisecond,
			Corrupt: netem.Corrupt{Share: 0.2, Where: netem.Payload, Bits: 3},
		},
		BA: netem.Config{Delay: time.Millisecond},
	}}})
	require.NoError(t, err)
	arrived := uint64(0)
	flows := map[capture.Flow]uint64{}
	l.Right.Trace(func(s *sim.Segment) {
		if !s.Sent && s.Length > 0 {
			arrived++
			flows[s.Flow] = max(flows[s.Flow], s.Seq+uint64(s.Length))
		}
	})
	for port := uint16(80); port < 82; port++ {
		over, err := l.Bulk(&sim.Bulk{Send: 300_000}, &sim.Bulk{}, port, time.Minute)
		require.NoError(t, err)
		require.True(t, over)
	}
	require.Len(t, flows, 2)
	for tuple, high := range flows {
		assert.EqualValues(t, 300_000, high, tuple)
	}
	out := sim.End{Host: l.Left}.Out().Counters()
	assert.Positive(t, out.Corrupted)
	assert.LessOrEqual(t, arrived, out.Out-out.Corrupted)
}

// Two observers of one host see the same packets.
func TestTwoTaps(t *testing.T) {
	l := lossyLine(t, 1)
	var counts [2]int
	for i := range counts {
		l.Left.Tap(func(clock.Time, int, stack.Direction, ip.DropReason, [][]byte) { counts[i]++ })
	}
	_, err := l.Bulk(&sim.Bulk{Send: 50_000}, &sim.Bulk{}, 80, time.Minute)
	require.NoError(t, err)
	assert.Greater(t, counts[0], 50)
	assert.Equal(t, counts[0], counts[1])
}

// captured runs a transfer. It returns the left host's capture, a capture of the router's right
// interface, and the number of packets that the left link lost.
func captured(tb testing.TB) (left, routed []byte, lost int) {
	tb.Helper()
	l := lossyLine(tb, 7)
	var files [2]bytes.Buffer
	c, err := l.Left.Capture(&files[0], 0)
	require.NoError(tb, err)
	r, err := l.Routers[0].Capture(&files[1], 0, 1)
	require.NoError(tb, err)
	over, err := l.Bulk(&sim.Bulk{Send: 500_000}, &sim.Bulk{}, 80, time.Minute)
	require.NoError(tb, err)
	require.True(tb, over)
	require.NoError(tb, c.Flush())
	require.NoError(tb, r.Flush())
	out := sim.End{Host: l.Left}.Out().Counters()
	return files[0].Bytes(), files[1].Bytes(), int(out.Lost + out.QueueDropped)
}

// A capture has virtual times: each run writes the same bytes, and tshark reads the events of the
// run from it.
func TestTsharkReadsCaptures(t *testing.T) {
	file, routed, lost := captured(t)
	same, _, _ := captured(t)
	require.True(t, bytes.Equal(file, same), "the output is deterministic")
	path, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("skip: needs tshark")
	}
	read := func(file []byte, args ...string) []string {
		cmd := exec.Command(path, append([]string{
			"-r", "-", "-n", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE",
		}, args...)...)
		cmd.Stdin = bytes.NewReader(file)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		require.NoError(t, cmd.Run(), stderr.String())
		return strings.Fields(stdout.String())
	}
	fields := func(filter, field string) []string {
		return read(file, "-Y", filter, "-T", "fields", "-e", field)
	}
	times := fields("tcp", "frame.time_epoch")
	require.Greater(t, len(times), 400)
	assert.Equal(t, "0.000000000", times[0])
	assert.Equal(t, []string{"if0"}, fields("frame.number==1", "frame.interface_name"))
	assert.Empty(t, fields("tcp.checksum.status==0 || ip.checksum.status==0", "frame.number"))
	// tshark draws its graphs from these fields: round trips, retransmissions, selective
	// acknowledgments.
	assert.NotEmpty(t, fields("tcp.analysis.ack_rtt", "tcp.analysis.ack_rtt"))
	assert.NotEmpty(t, fields("tcp.analysis.retransmission", "frame.number"))
	assert.NotEmpty(t, fields("tcp.options.sack_le", "tcp.options.sack_le"))
	ends := fields("tcp.flags.fin==1 && ip.src==10.0.0.1", "tcp.nxtseq")
	assert.Contains(t, ends, "500002", "relative, with one number each for SYN and FIN")

	// The router's capture has each packet twice; a capture of one interface has it once.
	sent := "ip.src==10.0.0.1"
	out := read(routed, "-Y", sent, "-T", "fields", "-e", "frame.interface_name")
	assert.NotContains(t, out, "if0")
	assert.Positive(t, lost)
	assert.Len(t, out, len(fields(sent, "frame.number"))-lost)
}
