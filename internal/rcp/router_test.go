package rcp_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rcp"
)

func at(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func dat(seq uint32, text string) []byte {
	p := rcp.Packet{Type: rcp.DAT, Seq: seq, Data: []byte(text)}
	return p.Append(nil)
}

func fin(seq uint32) []byte {
	p := rcp.Packet{Type: rcp.FIN, Seq: seq}
	return p.Append(nil)
}

func ack(seq, bits uint32) []byte {
	p := rcp.Packet{Type: rcp.ACK, Seq: seq, Bitmap: binary.BigEndian.AppendUint32(nil, bits)}
	return p.Append(nil)
}

func newRouter(tb testing.TB, cfg rcp.Config) *rcp.Router {
	tb.Helper()
	r, err := rcp.NewRouter(cfg)
	require.NoError(tb, err)
	return r
}

// round runs the next round of the send loop, and returns its packets.
func round(r *rcp.Router) (packets []string) {
	now := r.Deadline()
	r.Advance(now)
	var d rcp.Datagram
	for r.Output(now, &d) {
		packets = append(packets, string(d.Data))
	}
	return packets
}

func TestConfigurations(t *testing.T) {
	for _, c := range []rcp.Config{
		{Width: -1},
		{Width: rcp.MaxWidth + 1},
		{PacketSize: -1},
		{PacketSize: 65503},
		{MaxPayload: -5},
		{SendBuffer: -1},
		{RecvBuffer: 1<<30 + 1},
		{MaxSessions: -1},
		{Tick: -1, Timeout: 1},
		{Tick: time.Second, Timeout: time.Second},
		{MaxRTO: 1},
	} {
		_, err := rcp.NewRouter(c)
		assert.ErrorIs(t, err, rcp.ErrConfig, "%+v", c)
	}
	newRouter(t, rcp.Config{PacketSize: 65502, Width: rcp.MaxWidth})
}

func TestRouterWithSeveralSockets(t *testing.T) {
	r := newRouter(t, rcp.Config{})
	require.NoError(t, r.Listen(10))
	require.ErrorIs(t, r.Listen(10), rcp.ErrListening)
	_, ok := r.Accept()
	require.False(t, ok)
	a, b := at("10.0.0.1:1"), at("10.0.0.1:2")
	require.Equal(t, rcp.Accepted, r.Input(5, a, dat(0, "a")))
	require.Equal(t, rcp.Accepted, r.Input(6, b, dat(0, "b")))
	require.Equal(t, rcp.Accepted, r.Input(7, a, dat(1, "A")))
	x, _ := r.Accept()
	y, _ := r.Accept()
	assert.Equal(t, "aA bB", read(x)+" "+read(y)+"B", "the oldest first, each with its own stream")
	assert.Equal(t, a, x.Peer())
	assert.Equal(t, []string{string(ack(2, 0)), string(ack(1, 0))}, round(r), "one loop for both")

	told := map[*rcp.Socket]int{}
	for s, ok := r.Next(); ok; s, ok = r.Next() {
		told[s]++
	}
	assert.Equal(t, map[*rcp.Socket]int{x: 1, y: 1}, told, "once, however much there is")
	x.Owner = "mine"
	r.Close()
	assert.ErrorIs(t, x.Err(), rcp.ErrClosed)
	assert.Equal(t, clock.Never, r.Deadline())
	assert.ErrorIs(t, r.Listen(1), rcp.ErrClosed)
	_, err := r.Connect(9, a)
	assert.ErrorIs(t, err, rcp.ErrClosed)
	assert.Equal(t, rcp.NotListening, r.Input(9, a, dat(0, "")))
}

func TestConnectErrors(t *testing.T) {
	r := newRouter(t, rcp.Config{MaxSessions: 2})
	for _, peer := range []netip.AddrPort{{}, at("10.0.0.1:0"), at("0.0.0.0:5")} {
		_, err := r.Connect(1, peer)
		assert.ErrorIs(t, err, rcp.ErrAddress, "%v", peer)
	}
	s, err := r.Connect(1, serverAddr)
	require.NoError(t, err)
	_, err = r.Connect(1, serverAddr)
	assert.ErrorIs(t, err, rcp.ErrInUse)
	_, err = r.Connect(1, at("10.0.0.9:9"))
	require.NoError(t, err)
	_, err = r.Connect(1, at("10.0.0.9:10"))
	assert.ErrorIs(t, err, rcp.ErrTooMany)
	s.Abort()
	assert.ErrorIs(t, s.Err(), rcp.ErrClosed)
	_, err = r.Connect(1, serverAddr)
	assert.NoError(t, err, "aborting makes room at once")
	assert.Len(t, round(r), 2, "and the aborted socket sends nothing more")
}

// A socket that is aborted in the middle of a round sends no more packets.
func TestAbortInARound(t *testing.T) {
	r := newRouter(t, rcp.Config{PacketSize: 1})
	s, err := r.Connect(1, serverAddr)
	require.NoError(t, err)
	s.Tx().Write([]byte("abc"))
	r.Advance(1)
	var d rcp.Datagram
	require.True(t, r.Output(1, &d))
	s.Abort()
	assert.False(t, r.Output(1, &d))
	assert.Equal(t, rcp.NoSession, r.Input(2, serverAddr, ack(1, 0)))
	assert.Empty(t, round(r))
	assert.Equal(t, clock.Never, r.Deadline())
}

// Opening packets open sockets, up to the limit of sockets that wait.
func TestSocketsOpenUpToTheBacklog(t *testing.T) {
	r := newRouter(t, rcp.Config{MaxSessions: 3})
	peer := func(n byte) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, n}), 7)
	}
	assert.Equal(t, rcp.NotListening, r.Input(1, peer(1), dat(0, "")))
	require.NoError(t, r.Listen(2))
	assert.Equal(t, rcp.NoSession, r.Input(1, peer(1), ack(0, 0)))
	assert.Equal(t, rcp.NoSession, r.Input(1, peer(1), fin(1)))
	assert.Equal(t, rcp.NoSession, r.Input(1, peer(1), dat(32, "of an old connection")))
	assert.Equal(t, rcp.Accepted, r.Input(1, peer(1), dat(31, "the first were lost")))
	assert.Equal(t, rcp.Accepted, r.Input(1, peer(2), dat(0, "")))
	assert.Equal(t, rcp.BacklogFull, r.Input(1, peer(3), dat(0, "")))
	s, _ := r.Accept()
	assert.Equal(t, rcp.Accepted, r.Input(1, peer(3), dat(0, "")))
	_, _ = r.Accept()
	assert.Equal(t, rcp.TooManySessions, r.Input(1, peer(4), dat(0, "")))
	r.Unlisten()
	_, ok := r.Accept()
	assert.False(t, ok, "no socket waits any more")
	assert.Equal(t, rcp.Open, s.State(), "an accepted socket stays open")
	c := r.Counts()
	assert.Equal(t, uint64(3), c.Dropped[rcp.NoSession])
	assert.Equal(t, uint64(3), c.Received)
	require.NoError(t, r.Listen(1), "again")
}

// A packet without new information is counted by its reason.
func TestDroppedPackets(t *testing.T) {
	r := newRouter(t, rcp.Config{MaxPayload: 10, PacketSize: 10})
	require.NoError(t, r.Listen(1))
	peer := clientAddr
	require.Equal(t, rcp.Accepted, r.Input(1, peer, dat(0, "zero ")))
	s, _ := r.Accept()
	for _, c := range []struct {
		b    []byte
		want rcp.Verdict
	}{
		{nil, rcp.ShortHeader},
		{[]byte("\x07....."), rcp.UnknownType},
		{dat(1, "eleven byte"), rcp.LongData},
		{dat(0, "zero "), rcp.Duplicate},
		{dat(33, "far"), rcp.OutsideFence},
		{dat(2, "two "), rcp.Accepted},
		{dat(2, "TWO "), rcp.Duplicate},
		{fin(1), rcp.BehindFIN},
		{fin(4), rcp.Accepted},
		{fin(4), rcp.Duplicate},
		{fin(3), rcp.BehindFIN},
		{fin(5), rcp.BehindFIN},
	} {
		assert.Equal(t, c.want, r.Input(2, peer, c.b), "%q", c.b)
	}
	assert.Equal(t, rcp.BehindFIN, r.Input(2, peer, dat(4, "in place")))
	assert.Equal(t, rcp.BehindFIN, r.Input(2, peer, dat(5, "behind")))
	assert.Equal(t, rcp.UnsentACK, r.Input(2, peer, ack(1, 0)))
	assert.Equal(t, []string{string(ack(1, 1<<1|1<<3))}, round(r), "the bitmap of the fence")
	assert.Equal(t, rcp.Accepted, r.Input(2, peer, dat(1, "one ")))
	assert.Equal(t, rcp.Accepted, r.Input(2, peer, dat(3, "three")))
	assert.True(t, s.Finished())
	assert.Equal(t, "zero one two three", read(s))
	assert.Equal(t, rcp.Duplicate, r.Input(2, peer, fin(4)))
	assert.Equal(t, rcp.BehindFIN, r.Input(2, peer, dat(5, "")))

	s.Tx().Write([]byte("ab"))
	assert.Equal(t, []string{string(ack(5, 0)), string(dat(0, "ab"))}, round(r))
	assert.Equal(t, rcp.Accepted, r.Input(3, peer, ack(1, 0)))
	assert.Equal(t, rcp.OldACK, r.Input(3, peer, ack(0, 0)))
	c, own := r.Counts(), s.Info().Counts
	assert.Equal(t, own.Dropped[rcp.Duplicate], c.Dropped[rcp.Duplicate])
	assert.Equal(t, uint64(6), c.Dropped[rcp.BehindFIN])
	assert.Equal(t, uint64(1), c.Dropped[rcp.OldACK])
}

// Bits for packets that were never sent are ignored. In window mode the whole bitmap is ignored.
func TestBitmaps(t *testing.T) {
	for _, window := range []bool{false, true} {
		r := newRouter(t, rcp.Config{Window: window, PacketSize: 1})
		s, err := r.Connect(1, serverAddr)
		require.NoError(t, err)
		require.Equal(t, []string{string(dat(0, ""))}, round(r))
		require.Equal(t, rcp.Accepted, r.Input(2, serverAddr, ack(1, 0xffffffff)))
		s.Tx().Write([]byte("abcd"))
		all := []string{
			string(ack(0, 0)), string(dat(1, "a")), string(dat(2, "b")), string(dat(3, "c")),
			string(dat(4, "d")),
		}
		require.Equal(t, all, round(r))
		require.Equal(t, rcp.Accepted, r.Input(3, serverAddr, ack(1, 1<<1|1<<3)))
		want := []string{string(ack(0, 0)), string(dat(1, "a")), string(dat(3, "c"))}
		if window {
			want = all
		}
		assert.Equal(t, want, round(r))
	}
}

// A peer that restarts on the same port waits only until its old connection has timed out.
func TestRestartedPeer(t *testing.T) {
	w := newWorld(t, 1, rcp.Config{}, rcp.Config{})
	client, server := w.connect()
	client.Tx().Write(make([]byte, 40*256))
	server.Tx().Write([]byte("hello"))
	w.until(time.Second, "sent", func() bool {
		return client.Info().Una == 41 && server.Info().Una == 1
	})
	client.Abort()
	again, err := w.a.Connect(w.now, serverAddr)
	require.NoError(t, err)
	var fresh *rcp.Socket
	w.until(time.Second, "accepted", func() bool {
		if s, ok := w.b.Accept(); ok {
			fresh = s
		}
		return fresh != nil || again.State() == rcp.Closed
	})
	assert.ErrorIs(t, server.Err(), rcp.ErrTimeout)
	if fresh == nil { // the client gave up at the same instant
		again, err = w.a.Connect(w.now, serverAddr)
		require.NoError(t, err)
	}
	w.until(time.Second, "open", func() bool { return again.State() == rcp.Open })
}

// If both ends connect at once, the two ports share one connection.
func TestBothConnect(t *testing.T) {
	w := newWorld(t, 1, rcp.Config{}, rcp.Config{})
	client, err := w.a.Connect(w.now, serverAddr)
	require.NoError(t, err)
	server, err := w.b.Connect(w.now, clientAddr)
	require.NoError(t, err)
	w.exchange(1000, client, server)
	_, ok := w.b.Accept()
	assert.False(t, ok)
}

// Sockets returns the open sockets in the order in which they were opened.
func TestSocketsOfARouter(t *testing.T) {
	r := newRouter(t, rcp.Config{})
	var opened []*rcp.Socket
	for _, peer := range []string{"10.0.0.9:1", "10.0.0.3:1", "10.0.0.5:1"} {
		s, err := r.Connect(1, at(peer))
		require.NoError(t, err)
		opened = append(opened, s)
	}
	opened[1].Abort()
	assert.Equal(t, []*rcp.Socket{opened[0], opened[2]}, slices.Collect(r.Sockets()))
	for s := range r.Sockets() {
		assert.Same(t, opened[0], s)
		break
	}
}
