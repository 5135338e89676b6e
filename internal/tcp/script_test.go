package tcp

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// script plays a hand-written peer against one host, segment by segment, like packetdrill. Sequence
// numbers are relative to each end's SYN, as in a capture.
type script struct {
	t     *testing.T
	h     *Host
	now   clock.Time
	c     *Conn // the connection of the host
	l     *Listener
	tuple Tuple // the tuple as the host sees it
	iss   uint32
	peer  uint32 // sequence number of the peer's SYN
	train Train
	path  Path
	out   []sentSegment // segments sent and not yet checked
}

// sentSegment is one segment from the host.
type sentSegment struct {
	flags    Flags
	seq, ack uint32 // relative to the SYNs
	n        int
	text     string
	window   int
	options  Options
	ecn      ECN
}

func (s sentSegment) String() string {
	o := fmt.Sprintf("%v %d:%d(%d) ack %d", s.flags, s.seq, s.seq+uint32(s.n), s.n, s.ack)
	return o
}

const scriptISS, scriptPeer = 0xfffffff0, 0x7ffffff0 // both wrap after a few segments

func newScript(t *testing.T, cfg Config) *script {
	t.Helper()
	s := &script{
		t: t, now: clock.Time(time.Hour), iss: scriptISS, peer: scriptPeer,
		path: Path{MTU: 1400, Local: addrA},
		tuple: Tuple{
			LocalAddr: addrA, RemoteAddr: addrB, LocalPort: 80, RemotePort: 4000,
		},
	}
	cfg.Route = func(netip.Addr) Path { return s.path }
	cfg.Sequence = func(Tuple) uint32 { return s.iss }
	h, err := NewHost(cfg)
	require.NoError(t, err)
	s.h = h
	return s
}

// collect appends the segments that the host sends now to out.
func (s *script) collect() {
	for n := 0; s.h.Output(s.now, []int{1000}, &s.train); n++ {
		require.Less(s.t, n, 1<<16, "the host sends without end")
		t := &s.train
		require.Equal(s.t, s.tuple, t.Tuple)
		var text []byte
		for _, p := range t.Payload {
			text = append(text, p...)
		}
		require.Len(s.t, text, t.Len)
		for i := range t.Segments() {
			part := text
			g := sentSegment{flags: t.Flags, seq: t.Seq + uint32(i*t.MSS) - s.iss, window: int(t.Window), options: t.Options, ecn: t.ECN}
			if i < t.Segments()-1 {
				part = text[:t.MSS]
				g.flags &^= PSH | FIN
			}
			if i > 0 {
				g.flags &^= CWR
			}
			text = text[len(part):]
			g.n, g.text = len(part), string(part)
			if t.Flags.Has(ACK) {
				g.ack = t.Ack - s.peer
			}
			s.out = append(s.out, g)
		}
	}
}

// set changes the connection's options.
func (s *script) set(edit func(*Sockopts)) {
	s.t.Helper()
	o := s.c.Sockopts()
	edit(&o)
	require.NoError(s.t, s.c.SetSockopts(s.now, o))
}

// expect checks the next segment that the host has sent, and removes it from out.
func (s *script) expect(flags Flags, seq, ack uint32, n int) sentSegment {
	s.t.Helper()
	s.collect()
	require.NotEmpty(s.t, s.out, "nothing was sent, want %v", sentSegment{flags: flags, seq: seq, ack: ack, n: n})
	g := s.out[0]
	s.out = s.out[1:]
	require.Equal(s.t, sentSegment{flags: flags, seq: seq, ack: ack, n: n}.String(), g.String())
	return g
}

// quiet checks that the host sends nothing more.
func (s *script) quiet() {
	s.t.Helper()
	s.collect()
	require.Empty(s.t, s.out)
}

// send delivers a segment of n bytes of the peer's pattern.
func (s *script) send(flags Flags, seq, ack uint32, n int, opts ...Options) {
	s.sendWindow(flags, seq, ack, n, 65535, opts...)
}

func (s *script) sendWindow(flags Flags, seq, ack uint32, n int, window uint16, opts ...Options) {
	s.t.Helper()
	g := s.segment(flags, seq, ack, n, window, opts...)
	s.h.Input(s.now, &g)
}

// marked delivers a segment that a router has marked.
func (s *script) marked(flags Flags, seq, ack uint32, n int, opts ...Options) {
	s.t.Helper()
	g := s.segment(flags, seq, ack, n, 65535, opts...)
	g.ECN = CE
	s.h.Input(s.now, &g)
}

func (s *script) segment(
	flags Flags, seq, ack uint32, n int, window uint16, opts ...Options,
) Segment {
	text := make([]byte, n)
	if n > 0 {
		fill(text, uint64(seq-1))
	}
	g := Segment{
		Tuple:  s.tuple,
		Header: Header{Seq: s.peer + seq, Flags: flags, Window: window},
		Len:    n, Count: 1, Payload: [][]byte{text},
	}
	if flags.Has(ACK) {
		g.Ack = s.iss + ack
	}
	if len(opts) > 0 {
		g.Options = opts[0]
	}
	return g
}

// sack delivers a bare ACK with SACK blocks, given as relative pairs.
func (s *script) sack(ack uint32, blocks ...uint32) {
	var o Options
	for i := 0; i < len(blocks); i += 2 {
		o.addBlock(uint64(s.iss+blocks[i]), uint64(s.iss+blocks[i+1]))
	}
	s.send(ACK, s.c.rcvNxt(s), ack, 0, o)
}

// rcvNxt is the peer's next relative sequence number.
func (c *Conn) rcvNxt(s *script) uint32 { return uint32(c.rcv.nxt) - s.peer }

// wait advances the clock by d and runs the host's timers on the way.
func (s *script) wait(d time.Duration) {
	until := s.now.Add(d)
	for n := 0; ; n++ {
		require.Less(s.t, n, 1<<16, "a timer expires without effect")
		due := s.h.Deadline()
		if due == clock.Never || due > until {
			break
		}
		s.now = max(s.now, due)
		s.h.Advance(s.now)
		s.collect()
	}
	s.now = until
}

var fullOptions = Options{MSS: 1000, SACKPermitted: true, HasWindowScale: true, WindowScale: 0}

// accept establishes a connection that the peer opens.
func (s *script) accept(o Options) {
	s.t.Helper()
	s.listen(8)
	s.send(SYN, 0, 0, 0, o)
	s.expect(SYN|ACK, 0, 1, 0)
	s.now = s.now.Add(10 * time.Millisecond)
	s.send(ACK, 1, 1, 0)
	c, ok := s.l.Accept()
	require.True(s.t, ok)
	require.Equal(s.t, StateEstablished, c.State())
	s.c = c
	s.quiet()
}

func (s *script) listen(backlog int) {
	s.t.Helper()
	l, err := s.h.Listen(anywhere(netip.AddrPortFrom(s.tuple.LocalAddr, 80)), backlog)
	require.NoError(s.t, err)
	s.l = l
}

// connect begins a connection to the peer.
func (s *script) connect() {
	s.t.Helper()
	c, err := s.h.Connect(s.now, netip.AddrPortFrom(addrB, 4000), 80)
	require.NoError(s.t, err)
	s.c = c
}

// write appends n bytes of the pattern to the written data.
func (s *script) write(n int) {
	s.t.Helper()
	b := make([]byte, n)
	fill(b, s.c.Tx().Tail())
	require.Equal(s.t, n, s.c.Tx().Write(b))
	s.c.Wrote(s.now)
}

// read reads up to n bytes and checks them.
func (s *script) read(n int) int {
	s.t.Helper()
	at := s.c.Rx().Head()
	b := make([]byte, n)
	k := s.c.Rx().Read(b)
	require.NoError(s.t, check(b[:k], at))
	s.c.Consumed(s.now)
	return k
}
