package rcp_test

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rcp"
)

// read reads all buffered data.
func read(s *rcp.Socket) string {
	p := make([]byte, s.Rx().Len())
	return string(p[:s.Rx().Read(p)])
}

// exchange sends n bytes in each direction at once, closes both ends and checks the received data.
func (w *world) exchange(n int, client, server *rcp.Socket) {
	w.t.Helper()
	type side struct {
		s        *rcp.Socket
		out, in  []byte
		sent     int
		received []byte
		closed   bool
	}
	there, back := noise(7, n), noise(8, n)
	sides := []*side{{s: client, out: there, in: back}, {s: server, out: back, in: there}}
	p := make([]byte, 1000)
	w.apps = append(w.apps, func() {
		for _, x := range sides {
			x.sent += x.s.Tx().Write(x.out[x.sent:])
			if x.sent == n && !x.closed {
				x.closed = true
				x.s.CloseWrite()
			}
			for k := x.s.Rx().Read(p); k > 0; k = x.s.Rx().Read(p) {
				x.received = append(x.received, p[:k]...)
			}
		}
	})
	w.until(10*time.Minute, "both ends are done", func() bool {
		return client.State() == rcp.Closed && server.State() == rcp.Closed
	})
	for _, x := range sides {
		require.NoError(w.t, x.s.Err())
		require.True(w.t, x.s.Finished())
		require.True(w.t, bytes.Equal(x.in, x.received), "%d of %d bytes, or not those sent",
			len(x.received), len(x.in))
	}
	require.Equal(w.t, clock.Never, w.a.Deadline(), "a router without sockets has nothing to do")
}

func TestStreamsArriveWhole(t *testing.T) {
	worst := faults{loss: .3, dup: .2, delay: ms, jit: 25 * ms}
	for _, c := range []struct {
		name   string
		wire   faults
		a, b   rcp.Config
		length int
	}{
		{"clean", faults{}, rcp.Config{}, rcp.Config{}, 300_000},
		{"lossy", faults{loss: .5}, rcp.Config{}, rcp.Config{}, 100_000},
		{"everything", worst, rcp.Config{}, rcp.Config{}, 100_000},
		{"everything, window", worst, rcp.Config{Window: true}, rcp.Config{Window: true}, 100_000},
		{"everything, timer", worst, rcp.Config{Timer: true}, rcp.Config{Timer: true}, 100_000},
		{"one packet at a time", worst, rcp.Config{Width: 1}, rcp.Config{Width: 1}, 5_000},
		{"a wide fence", worst, rcp.Config{Width: 1000}, rcp.Config{Width: 1000}, 500_000},
		{"widths that differ", worst, rcp.Config{Width: 100}, rcp.Config{Width: 7}, 50_000},
		{"not whole words", worst, rcp.Config{Width: 45}, rcp.Config{Width: 45}, 50_000},
		{"sizes that differ", worst, rcp.Config{PacketSize: 1400}, rcp.Config{PacketSize: 1}, 5_000},
		{
			"small buffers", worst,
			rcp.Config{RecvBuffer: 1, SendBuffer: 100},
			rcp.Config{RecvBuffer: 2000, SendBuffer: 1},
			3_000,
		},
		{"nothing to say", worst, rcp.Config{}, rcp.Config{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(2) {
				c.a.Timeout, c.b.Timeout = 2*time.Second, 2*time.Second
				w := newWorld(t, seed, c.a, c.b)
				w.both(c.wire)
				client, server := w.connect()
				w.exchange(c.length, client, server)
			}
		})
	}
}

func TestSameSeedGivesTheSameRun(t *testing.T) {
	run := func(seed uint64) [32]byte {
		var log bytes.Buffer
		w := newWorld(t, seed, rcp.Config{}, rcp.Config{})
		w.both(faults{loss: .2, dup: .1, delay: ms, jit: 15 * ms})
		for _, e := range []*end{w.a, w.b} {
			e.log = func(_ clock.Time, b []byte) { log.Write(b) }
		}
		client, server := w.connect()
		w.exchange(20_000, client, server)
		return sha256.Sum256(log.Bytes())
	}
	first, again := run(1), run(1)
	assert.Equal(t, first, again)
	assert.NotEqual(t, first, run(2))
}

// The two directions close independently: after CloseWrite a socket can still read.
func TestDirectionsCloseIndependently(t *testing.T) {
	w := newWorld(t, 1, rcp.Config{}, rcp.Config{})
	client, server := w.connect()
	client.Tx().Write([]byte("question"))
	client.CloseWrite()
	w.until(time.Second, "the question's end", server.Finished)
	assert.Equal(t, "question", read(server))
	w.run(time.Second) // a peer that still sends is not silent
	assert.Equal(t, rcp.Open, client.State())
	server.Tx().Write([]byte("answer"))
	server.CloseWrite()
	w.until(time.Second, "the answer's end", client.Finished)
	assert.Equal(t, "answer", read(client))
	w.until(time.Second, "both are gone", func() bool {
		return client.State() == rcp.Closed && server.State() == rcp.Closed
	})
	assert.NoError(t, client.Err())
	assert.NoError(t, server.Err())
	client.Abort()
	assert.NoError(t, client.Err(), "there was nothing left to abort")
}

// No data leaves after a FIN: the peer would wait for it forever.
func TestNoDataAfterAFIN(t *testing.T) {
	w := newWorld(t, 1, rcp.Config{}, rcp.Config{})
	client, server := w.connect()
	client.Tx().Write([]byte("in front"))
	client.CloseWrite()
	w.until(time.Second, "the end", server.Finished)
	client.Tx().Write([]byte("behind"))
	w.run(50 * ms)
	server.CloseWrite()
	w.until(time.Second, "both are gone", func() bool {
		return client.State() == rcp.Closed && server.State() == rcp.Closed
	})
	assert.NoError(t, client.Err())
	assert.Equal(t, "in front", read(server))
	assert.Zero(t, server.Info().Counts.Dropped[rcp.BehindFIN])
}

// If the last acknowledgment is lost, a lingering socket retransmits it.
func TestLostLastAcknowledgmentIsRetransmitted(t *testing.T) {
	w := newWorld(t, 1, rcp.Config{}, rcp.Config{})
	client, server := w.connect()
	client.Close()
	w.until(time.Second, "the client's FIN", server.Finished)
	lost := 0
	w.a.wire.lose = func(b []byte) bool {
		if b[0] == byte(rcp.ACK) && client.Finished() && lost < 4 {
			lost++
			return true
		}
		return false
	}
	server.Close()
	w.until(time.Second, "both are gone", func() bool {
		return client.State() == rcp.Closed && server.State() == rcp.Closed
	})
	assert.Equal(t, 4, lost)
	assert.NoError(t, client.Err())
	assert.NoError(t, server.Err())
}

// If a sender's last packets wait in the receiver's fence, the sender does not repeat them, so no
// packet triggers the acknowledgment that it still needs. A lingering receiver sends the
// acknowledgment by itself.
func TestLingeringReceiverAcknowledges(t *testing.T) {
	w := newWorld(t, 1, rcp.Config{}, rcp.Config{RecvBuffer: 2000})
	client, server := w.connect()
	server.CloseWrite()
	text := noise(1, 4000)
	client.Tx().Write(text)
	client.CloseWrite()
	w.run(50 * ms)
	require.Positive(t, server.Info().Held)
	repeated := client.Info().Counts.Again
	lost := 0
	w.b.wire.lose = func([]byte) bool {
		if server.State() == rcp.Lingering && lost < 3 {
			lost++
			return true
		}
		return false
	}
	var got string
	w.apps = append(w.apps, func() { got += read(server) })
	w.until(time.Second, "both are gone", func() bool {
		return client.State() == rcp.Closed && server.State() == rcp.Closed
	})
	assert.Equal(t, 3, lost)
	assert.Equal(t, string(text), got)
	assert.NoError(t, client.Err())
	assert.NoError(t, server.Err())
	assert.Equal(t, repeated, client.Info().Counts.Again)
}

// A closed socket does not wait forever for a peer that does not close.
func TestClosedSocketDoesNotWaitForever(t *testing.T) {
	w := newWorld(t, 1, rcp.Config{}, rcp.Config{})
	client, server := w.connect()
	server.Tx().Write([]byte("never read"))
	client.Close()
	w.until(2*time.Minute, "the client is gone", func() bool { return client.State() == rcp.Closed })
	assert.NoError(t, client.Err())
	assert.Empty(t, read(client), "data after Close is discarded")
	w.until(time.Second, "the server finds out", func() bool { return server.State() == rcp.Closed })
	assert.ErrorIs(t, server.Err(), rcp.ErrTimeout)
}

// In the document, ten rounds of silence end a connection.
func TestSilenceEndsASocket(t *testing.T) {
	w := newWorld(t, 1, rcp.Config{}, rcp.Config{})
	client, server := w.connect()
	w.run(time.Second)
	require.Equal(t, rcp.Open, client.State(), "acknowledgments keep it alive")
	w.b.wire.loss = 1
	start := w.now
	w.until(time.Second, "the client is gone", func() bool { return client.State() == rcp.Closed })
	assert.ErrorIs(t, client.Err(), rcp.ErrTimeout)
	assert.InDelta(t, 100, w.now.Sub(start).Milliseconds(), 11)
	w.until(time.Second, "the server too", func() bool { return server.State() == rcp.Closed })
	assert.ErrorIs(t, server.Err(), rcp.ErrTimeout)
}

// The zero Config survives a pause of a second, as on a busy machine, and detects that a peer is
// gone.
func TestPauseOfASecond(t *testing.T) {
	w := worldOf(t, 1, rcp.Config{}, rcp.Config{})
	client, server := w.connect()
	w.run(time.Second)
	client.Tx().Write([]byte("before"))
	w.a.wire.loss, w.b.wire.loss = 1, 1
	w.run(1100 * time.Millisecond)
	require.Equal(t, rcp.Open, client.State())
	require.Equal(t, rcp.Open, server.State())
	w.a.wire.loss, w.b.wire.loss = 0, 0
	w.run(100 * time.Millisecond)
	assert.Equal(t, "before", read(server))

	w.a.wire.loss, w.b.wire.loss = 1, 1
	start := w.now
	w.until(time.Minute, "the client is gone", func() bool { return client.State() == rcp.Closed })
	assert.ErrorIs(t, client.Err(), rcp.ErrTimeout)
	assert.InDelta(t, 3000, w.now.Sub(start).Milliseconds(), 20)
}

// A single packet, whose source may be forged, is answered by at most ten rounds. A second packet
// keeps the socket open.
func TestOnePacketIsAnsweredByTenRounds(t *testing.T) {
	w := worldOf(t, 1, rcp.Config{}, rcp.Config{})
	p := rcp.Packet{Type: rcp.DAT, Seq: 0, Data: []byte("forged")}
	require.Equal(t, rcp.Accepted, w.b.Input(w.now, clientAddr, p.Append(nil)))
	w.run(2 * time.Second)
	c := w.b.Counts()
	assert.Equal(t, uint64(10), c.ACK)
	p.Seq = 1
	require.Equal(t, rcp.Accepted, w.b.Input(w.now, clientAddr, p.Append(nil)))
	w.run(time.Second)
	c = w.b.Counts()
	assert.Greater(t, c.ACK, uint64(100))
}

func TestSilentPeer(t *testing.T) {
	w := newWorld(t, 1, rcp.Config{}, rcp.Config{})
	w.b.Unlisten()
	s, err := w.a.Connect(w.now, serverAddr)
	require.NoError(t, err)
	w.until(time.Second, "given up", func() bool { return s.State() == rcp.Closed })
	assert.ErrorIs(t, s.Err(), rcp.ErrTimeout)
	assert.Equal(t, uint64(10), w.a.Counts().DAT, "once a tick")
	c := w.b.Counts()
	assert.Equal(t, uint64(10), c.Dropped[rcp.NotListening])
}

// If the reader is slow, packets without room wait in the fence. There they are acknowledged, and
// are not repeated until the application reads.
func TestSlowReaderStopsTheSender(t *testing.T) {
	w := newWorld(t, 1, rcp.Config{}, rcp.Config{RecvBuffer: 2000})
	client, server := w.connect()
	text := noise(1, 40_000)
	require.Equal(t, len(text), client.Tx().Write(text))
	w.run(200 * ms)
	full := w.a.Counts()
	assert.Equal(t, 7*256, server.Info().Unread, "whole packets that fit")
	assert.Equal(t, 32, server.Info().Held)
	w.run(time.Second)
	c := w.a.Counts()
	assert.Equal(t, full.DAT, c.DAT, "no packet that has arrived is retransmitted")
	assert.Equal(t, rcp.Open, client.State())

	for _, ok := w.b.Next(); ok; _, ok = w.b.Next() {
	}
	got := read(server)
	require.Len(t, got, 7*256)
	w.a.wire.loss, w.b.wire.loss = 1, 1
	w.run(11 * ms)
	news, ok := w.b.Next()
	require.True(t, ok, "data from the fence is readable when there is room")
	assert.Same(t, server, news)
	w.a.wire.loss, w.b.wire.loss = 0, 0
	w.apps = append(w.apps, func() { got += read(server) })
	w.until(10*time.Second, "read", func() bool { return len(got) == len(text) })
	assert.Equal(t, string(text), got)
}

// Sequence numbers wrap without an effect on the data.
func TestSequenceNumbersWrap(t *testing.T) {
	for _, cfg := range []rcp.Config{{}, {Window: true}} {
		cfg.Timeout = time.Second
		w := newWorld(t, 3, cfg, cfg)
		client, server := w.connect()
		w.run(50 * ms)
		rcp.Age(client, server, 1<<32-20)
		rcp.Age(server, client, 1<<32-20)
		w.both(faults{loss: .2, dup: .1, delay: ms, jit: 15 * ms})
		w.exchange(50_000, client, server)
		assert.Greater(t, client.Info().Una, uint64(1<<32+100))
	}
}

func TestExpand(t *testing.T) {
	for _, c := range []struct {
		ref  uint64
		seq  uint32
		want uint64
	}{
		{0, 0, 0},
		{0, 5, 5},
		{5, 0, 0},
		{0, 1<<32 - 1, 1<<32 - 1},
		{1 << 32, 1<<32 - 1, 1<<32 - 1},
		{1<<32 - 1, 0, 1 << 32},
		{3<<32 + 7, 9, 3<<32 + 9},
		{3<<32 + 7, 1<<31 + 8, 2<<32 + 1<<31 + 8},
	} {
		assert.Equal(t, c.want, rcp.Expand(c.ref, c.seq), "%d near %d", c.seq, c.ref)
	}
}

// A fence of one packet is stop-and-wait: it sends a packet per tick. A tick delivers a new packet
// with probability 1-p, and later ticks repeat the packet until its acknowledgment arrives. In all,
// (1-p)/(1+p) packets are delivered per tick.
func TestFenceOfOneIsStopAndWait(t *testing.T) {
	const p = .2
	cfg := rcp.Config{Width: 1, Timeout: 10 * time.Second, SendBuffer: 1 << 20}
	w := newWorld(t, 1, cfg, cfg)
	client, server := w.connect()
	client.Tx().Write(make([]byte, 256*2000))
	w.both(faults{loss: p})
	w.apps = append(w.apps, func() { read(server) })
	start := w.now
	w.until(time.Hour, "sent", func() bool { return client.Info().Una > 2000 })
	ticks := float64(w.now.Sub(start)) / float64(10*ms)
	assert.InEpsilon(t, (1-p)/(1+p), 2000/ticks, .03)
}

// If a link accepts less than a round, the round continues later where it stopped, and sockets take
// turns.
func TestFullLinkDelaysTheRound(t *testing.T) {
	r, err := rcp.NewRouter(rcp.Config{Timeout: time.Hour})
	require.NoError(t, err)
	now := clock.Time(1)
	peers := map[string]*rcp.Socket{}
	for _, peer := range []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"} {
		s, err := r.Connect(now, at(peer))
		require.NoError(t, err)
		s.Tx().Write(make([]byte, 256*5))
		peers[peer] = s
	}
	seen := map[string]int{}
	for range 6 {
		r.Advance(now)
		var d rcp.Datagram
		for range 3 { // the link accepts three packets per tick, and a round has eighteen
			require.True(t, r.Output(now, &d))
			seen[d.Peer.String()+" "+string(d.Data[:5])]++
		}
		now = now.Add(10 * ms)
	}
	assert.Len(t, seen, 18, "each packet once, before any of them again")
	for _, s := range peers {
		assert.Equal(t, uint64(6), s.Info().Nxt)
	}
}

func TestLateAdvanceRunsOneRound(t *testing.T) {
	r, err := rcp.NewRouter(rcp.Config{Timeout: time.Hour})
	require.NoError(t, err)
	_, err = r.Connect(1, serverAddr)
	require.NoError(t, err)
	assert.Equal(t, clock.Time(1), r.Deadline())
	late := clock.Time(1).Add(time.Second)
	r.Advance(late)
	assert.Equal(t, late.Add(10*ms), r.Deadline())
	var d rcp.Datagram
	n := 0
	for r.Output(late, &d) {
		n++
	}
	assert.Equal(t, 1, n)
}

// An application observes retransmission by timer as in RFC 6298 §2.2, §2.3, §3 and §5.5.
func TestRetransmissionTimer(t *testing.T) {
	cfg := rcp.Config{Timer: true, Timeout: time.Second}
	w := newWorld(t, 1, cfg, cfg)
	w.both(faults{delay: 20 * ms})
	client, _ := w.connect()
	w.run(time.Second)
	require.Zero(t, client.Info().SRTT, "what opened was sent more than once")
	client.Tx().Write([]byte("a sample"))
	w.run(time.Second)
	i := client.Info()
	require.Positive(t, i.SRTT)
	assert.GreaterOrEqual(t, i.SRTT, 40*ms)
	assert.LessOrEqual(t, i.SRTT, 51*ms, "two ways, and a tick until the peer's round")
	assert.GreaterOrEqual(t, i.RTO, i.SRTT+10*ms, "RFC 6298 §2.3: by a granularity at least")
	assert.Less(t, i.RTO, time.Second, "RFC 6298 §2.4 would have it wait a second")

	w.a.wire.lose = func(b []byte) bool { return b[0] == byte(rcp.DAT) }
	var sent []time.Duration
	start := w.now
	w.a.log = func(now clock.Time, b []byte) {
		if b[0] == byte(rcp.DAT) {
			sent = append(sent, now.Sub(start))
		}
	}
	srtt := i.SRTT
	client.Tx().Write([]byte("lost"))
	w.run(900 * ms)
	require.GreaterOrEqual(t, len(sent), 3)
	first, second := sent[1]-sent[0], sent[2]-sent[1]
	assert.InDelta(t, i.RTO.Seconds(), first.Seconds(), .011)
	assert.InDelta(t, 2*i.RTO.Seconds(), second.Seconds(), .011, "RFC 6298 §5.5: twice that")
	w.a.wire.lose = nil
	w.run(2 * time.Second)
	assert.Equal(t, srtt, client.Info().SRTT, "RFC 6298 §3: a retransmitted packet gives no sample")
	assert.Equal(t, uint64(3), client.Info().Una)
}

// RFC 6298 §2.5: the RTO may have an upper bound.
func TestRetransmissionTimerIsBounded(t *testing.T) {
	cfg := rcp.Config{Timer: true, Timeout: time.Second, MaxRTO: 60 * ms}
	w := newWorld(t, 1, cfg, cfg)
	client, _ := w.connect()
	client.Tx().Write([]byte("lost"))
	w.a.wire.lose = func(b []byte) bool { return b[0] == byte(rcp.DAT) }
	w.run(610 * ms)
	sent := client.Info().Counts.DAT
	w.run(600 * ms)
	assert.Equal(t, sent+10, client.Info().Counts.DAT)
}

func TestRandomConfigurations(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 9))
		cfg := func() rcp.Config {
			return rcp.Config{
				Width: 1 + rng.IntN(70), PacketSize: 1 + rng.IntN(600), Window: rng.IntN(4) == 0,
				Timer: rng.IntN(3) == 0, Timeout: 3 * time.Second, MaxRTO: 200 * ms,
				RecvBuffer: 1 + rng.IntN(4000), SendBuffer: 1 + rng.IntN(4000),
			}
		}
		w := newWorld(t, seed, cfg(), cfg())
		w.both(faults{
			loss: rng.Float64() / 2, dup: rng.Float64() / 2, delay: ms,
			jit: time.Duration(1 + rng.IntN(int(60*ms))),
		})
		client, server := w.connect()
		w.exchange(5_000, client, server)
	}
}
