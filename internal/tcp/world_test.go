package tcp

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

var (
	addrA = netip.MustParseAddr("10.0.0.1")
	addrB = netip.MustParseAddr("10.0.0.2")
	addrC = netip.MustParseAddr("fd00::1")
	addrD = netip.MustParseAddr("fd00::2")
)

// wire describes the path between the two hosts.
type wire struct {
	delay, jitter      time.Duration
	loss, dup, reorder float64
	corrupt            float64 // the receiver drops the packet, as after a bad checksum
	bytesPerSec        float64
	merge              bool    // the receive path merges segments into trains
	mark               float64 // a router marks ECN-capable packets
	mtu                int
	v6                 bool
	pause, every       time.Duration // the path stops for pause once per every
}

type packet struct {
	at    clock.Time
	order int
	to    int
	tuple Tuple // as the receiver sees the segment
	data  []byte
	ecn   ECN
}

type packetHeap []*packet

func (h packetHeap) Len() int { return len(h) }
func (h packetHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h packetHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *packetHeap) Push(x any)   { *h = append(*h, x.(*packet)) }
func (h *packetHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// world joins two hosts by a wire, in virtual time.
type world struct {
	t       testing.TB
	now     clock.Time
	rng     *rand.Rand
	wire    wire
	addrs   [2]netip.Addr
	hosts   [2]*Host
	flight  packetHeap
	order   int
	linkAt  [2]clock.Time // when each direction's transmitter is free
	tap     func(from int, h Header, n int) (drop bool)
	segs    [2]int // sent by each host
	dropped int
	accept  func(c *Conn)
	event   func(host int, c *Conn, e Event)
	down    bool
	verify  bool   // check the invariants at every step
	every   func() // called at every step
}

func newWorld(tb testing.TB, seed uint64, wi wire, cfg Config) *world {
	tb.Helper()
	if wi.mtu == 0 {
		wi.mtu = 1400
	}
	w := &world{
		t: tb, now: clock.Time(time.Hour), wire: wi, addrs: [...]netip.Addr{addrA, addrB},
		rng: rand.New(rand.NewPCG(seed, 7)),
	}
	if wi.v6 {
		w.addrs = [...]netip.Addr{addrC, addrD}
	}
	for i, local := range w.addrs {
		c := cfg
		c.Route = func(netip.Addr) Path {
			if w.down {
				return Path{Outlet: -1}
			}
			return Path{Outlet: 0, MTU: w.wire.mtu, Local: local}
		}
		c.Secret[0] = byte(seed) ^ byte(i)
		h, err := NewHost(c)
		require.NoError(tb, err)
		w.hosts[i] = h
	}
	return w
}

// pump passes the segments that both hosts send to the wire.
func (w *world) pump() {
	if w.verify {
		defer func() { verify(w.t, w.hosts[0]); verify(w.t, w.hosts[1]) }()
	}
	var train Train
	for again := true; again; {
		again = false
		for i, h := range w.hosts {
			for h.Output(w.now, []int{1 << 20}, &train) {
				again = true
				w.put(i, &train)
			}
			w.drainEvents(i, h)
		}
	}
}

func (w *world) drainEvents(i int, h *Host) {
	for {
		c, l, e, ok := h.NextEvent()
		if !ok {
			return
		}
		if l != nil {
			for {
				nc, ok := l.Accept()
				if !ok {
					break
				}
				if w.accept != nil {
					w.accept(nc)
				}
			}
			continue
		}
		if w.event != nil {
			w.event(i, c, e)
		}
	}
}

// put encodes a train as single segments and applies the wire's impairments to each.
func (w *world) put(from int, t *Train) {
	var text []byte
	for _, p := range t.Payload {
		text = append(text, p...)
	}
	equal(w.t, t.Len, len(text))
	n := t.Segments()
	for i := range n {
		h := t.Header
		h.Seq += uint32(i * t.MSS)
		part := text
		if i < n-1 {
			part = text[:t.MSS]
			h.Flags &^= PSH | FIN
		}
		if i > 0 {
			h.Flags &^= CWR
		}
		text = text[len(part):]
		b := make([]byte, h.Size()+len(part))
		h.Put(b, t.LocalPort, t.RemotePort)
		copy(b[h.Size():], part)
		atMost(w.t, w.packet(&h, len(part)), w.wire.mtu)
		w.segs[from]++
		if w.tap != nil && w.tap(from, h, len(part)) {
			w.dropped++
			continue
		}
		w.impair(from, t, b)
	}
}

// packet returns the length of the IP packet with a segment.
func (w *world) packet(h *Header, n int) int {
	if w.wire.v6 {
		return ip6HeaderSize + h.Size() + n
	}
	return ipHeaderSize + h.Size() + n
}

func (w *world) impair(from int, t *Train, b []byte) {
	wi := &w.wire
	if w.rng.Float64() < wi.loss+wi.corrupt {
		w.dropped++
		return
	}
	codepoint := t.ECN
	if wi.mark > 0 && codepoint != NotECT && w.rng.Float64() < wi.mark {
		codepoint = CE
	}
	copies := 1
	if w.rng.Float64() < wi.dup {
		copies = 2
	}
	for range copies {
		at := w.now
		if wi.bytesPerSec > 0 {
			at = max(at, w.linkAt[from]).Add(time.Duration(float64(len(b)+20) / wi.bytesPerSec * 1e9))
			w.linkAt[from] = at
		}
		at = at.Add(wi.delay)
		if wi.pause > 0 {
			if into := at.Sub(0) % wi.every; into < wi.pause {
				at = at.Add(wi.pause - into)
			}
		}
		if w.rng.Float64() < wi.reorder {
			at = at.Add(time.Duration(w.rng.Float64() * float64(2*wi.delay+time.Microsecond)))
		}
		if wi.jitter > 0 {
			at = at.Add(time.Duration(w.rng.Int64N(int64(wi.jitter))))
		}
		w.order++
		heap.Push(&w.flight, &packet{
			at: at, order: w.order, to: 1 - from, data: slices.Clone(b), ecn: codepoint,
			tuple: Tuple{
				LocalAddr: t.RemoteAddr, RemoteAddr: t.LocalAddr,
				LocalPort: t.RemotePort, RemotePort: t.LocalPort,
			},
		})
	}
}

// next returns the time of the next event.
func (w *world) next() clock.Time {
	at := clock.Never
	if len(w.flight) > 0 {
		at = w.flight[0].at
	}
	return clock.Earliest(at, w.hosts[0].Deadline(), w.hosts[1].Deadline())
}

// step advances the clock to the next event, at most to until, and runs it. It returns false if no
// event is left before until.
func (w *world) step(until clock.Time) bool {
	at := w.next()
	if at == clock.Never || at > until {
		w.now = max(w.now, until)
		return false
	}
	w.now = max(w.now, at)
	if w.every != nil {
		w.every()
	}
	for len(w.flight) > 0 && w.flight[0].at <= w.now {
		w.deliver()
	}
	for _, h := range w.hosts {
		if h.Deadline().Due(w.now) {
			h.Advance(w.now)
		}
	}
	w.pump()
	return true
}

// deliver delivers the next packet. If the wire merges segments, it merges the packets that follow.
func (w *world) deliver() {
	p := heap.Pop(&w.flight).(*packet)
	_, _, h, payload, ok := ParseHeader(p.data)
	holds(w.t, ok, "it has a header")
	s := Segment{Tuple: p.tuple, Header: h, Len: len(payload), Count: 1, ECN: p.ecn}
	if len(payload) > 0 {
		s.Payload = [][]byte{payload}
	}
	for w.wire.merge && len(w.flight) > 0 && w.flight[0].at <= w.now && s.Len > 0 {
		q := w.flight[0]
		_, _, g, more, ok := ParseHeader(q.data)
		holds(w.t, ok, "it has a header")
		if q.to != p.to || q.tuple != p.tuple || g.Seq != s.Seq+uint32(s.Len) || len(more) == 0 ||
			s.Flags != ACK || g.Flags&^PSH != ACK || g.Ack != s.Ack || g.Window != s.Window ||
			g.Options != s.Options || q.ecn != s.ECN {
			break
		}
		heap.Pop(&w.flight)
		s.Payload = append(s.Payload, more)
		s.Len += len(more)
		s.Count++
		s.Flags |= g.Flags
	}
	w.hosts[p.to].Input(w.now, &s)
	for i := range p.data {
		p.data[i] = 0xee // Input must not keep the data
	}
	for _, more := range s.Payload {
		for i := range more {
			more[i] = 0xee
		}
	}
}

// run advances the clock by d.
func (w *world) run(d time.Duration) {
	w.pump()
	until := w.now.Add(d)
	for w.step(until) {
	}
}

// until runs until cond holds, for at most d.
func (w *world) until(d time.Duration, cond func() bool) bool {
	w.pump()
	until := w.now.Add(d)
	for !cond() {
		if !w.step(until) {
			return cond()
		}
	}
	return true
}

// connect establishes a connection from host 0 to host 1.
func (w *world) connect() (a, b *Conn) {
	w.t.Helper()
	l, err := w.hosts[1].Listen(netip.AddrPortFrom(w.addrs[1], 80), 4)
	require.NoError(w.t, err)
	w.accept = func(c *Conn) { b = c }
	a, err = w.hosts[0].Connect(w.now, netip.AddrPortFrom(w.addrs[1], 80), 0)
	require.NoError(w.t, err)
	ok := w.until(5*time.Minute, func() bool {
		return a.State() == StateClosed || a.State() == StateEstablished && b != nil
	})
	require.True(w.t, ok, "no connection")
	l.Close(w.now)
	w.accept = nil
	return a, b
}

// pattern is the content of every test stream: the byte at each offset.
var pattern = func() []byte {
	b := make([]byte, 65521)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}()

// stream drives one direction of a connection. It writes and reads pieces of random size and checks
// every byte.
type stream struct {
	from, to       *Conn
	size           uint64
	written, read  uint64
	closed         bool
	maxWrite       int
	maxRead        int
	lazy           float64 // chance that the reader does not read this time
	eof            bool
	buf            []byte
	keepOpen, done bool
}

func newStream(from, to *Conn, size uint64) *stream {
	return &stream{
		from: from, to: to, size: size, maxWrite: 1 << 17, maxRead: 1 << 17,
		buf: make([]byte, 1<<17),
	}
}

func fill(b []byte, off uint64) {
	for len(b) > 0 {
		n := copy(b, pattern[off%uint64(len(pattern)):])
		b, off = b[n:], off+uint64(n)
	}
}

// move lets the writer and the reader act once.
func (s *stream) move(w *world) {
	if s.written < s.size {
		n := min(uint64(1+w.rng.IntN(s.maxWrite)), s.size-s.written, uint64(s.from.Tx().Free()))
		b := s.buf[:n]
		fill(b, s.written)
		k := s.from.Tx().Write(b)
		equal(w.t, int(n), k)
		s.written += n
		if n > 0 {
			s.from.Wrote(w.now)
		}
	}
	if s.written == s.size && !s.closed && !s.keepOpen {
		s.closed = true
		_ = s.from.CloseWrite(w.now)
	}
	if w.rng.Float64() < s.lazy {
		return
	}
	s.drain(w, 1+w.rng.IntN(s.maxRead))
}

func (s *stream) drain(w *world, n int) {
	b := s.buf[:min(n, len(s.buf))]
	n = s.to.Rx().Read(b)
	if n > 0 {
		if err := check(b[:n], s.read); err != nil {
			require.NoError(w.t, err)
		}
		s.read += uint64(n)
		s.to.Consumed(w.now)
	}
	s.eof = s.to.ReadDone() && s.to.Rx().Len() == 0
	s.done = s.eof || s.keepOpen && s.read == s.size
}

func check(b []byte, off uint64) error {
	for i := 0; i < len(b); {
		p := pattern[(off+uint64(i))%uint64(len(pattern)):]
		k := min(len(p), len(b)-i)
		if string(p[:k]) != string(b[i:i+k]) {
			return fmt.Errorf("wrong byte within [%d, %d)", off+uint64(i), off+uint64(i+k))
		}
		i += k
	}
	return nil
}

// transfer moves the streams until all are done or a connection fails.
func (w *world) transfer(limit time.Duration, ss ...*stream) bool {
	end := w.now.Add(limit)
	tick := w.now
	for {
		done := true
		for _, s := range ss {
			s.move(w)
			done = done && s.done
		}
		w.pump()
		if done {
			return true
		}
		if w.now >= end || ss[0].from.State() == StateClosed && ss[0].from.Err() != nil {
			return false
		}
		// The applications act again after a tick or at the next event.
		if tick <= w.now {
			tick = w.now.Add(time.Duration(1 + w.rng.Int64N(int64(200*time.Microsecond))))
		}
		w.step(tick)
	}
}
