package rcp_test

import (
	"container/heap"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rcp"
)

const ms = time.Millisecond

var (
	clientAddr = netip.MustParseAddrPort("10.0.1.2:1234")
	serverAddr = netip.MustParseAddrPort("10.0.0.1:1234")
)

// faults configures one direction of a link.
type faults struct {
	loss, dup  float64
	delay, jit time.Duration // delay of the link, and jitter, which reorders packets
	lose       func(b []byte) bool
}

// end is one router of the world, with its transmit path.
type end struct {
	*rcp.Router
	addr    netip.AddrPort
	peer    *end
	wire    faults
	rng     *rand.Rand
	carried int // number of datagrams that entered the link
	log     func(now clock.Time, b []byte)
}

type event struct {
	at clock.Time
	n  int
	do func()
}

type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].n < a[j].n
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// world consists of two routers, a link and the pending events, in virtual time.
type world struct {
	t      *testing.T
	now    clock.Time
	n      int
	events agenda
	a, b   *end // client and server
	apps   []func()
}

func newWorld(t *testing.T, seed uint64, client, server rcp.Config) *world {
	t.Helper()
	return worldOf(t, seed, impatient(client), impatient(server))
}

// impatient returns the configuration with the document's timeout of ten ticks, unless it sets
// another.
func impatient(cfg rcp.Config) rcp.Config {
	if cfg.Timeout == 0 {
		cfg.Timeout = 100 * time.Millisecond
		if cfg.Tick != 0 {
			cfg.Timeout = 10 * cfg.Tick
		}
	}
	return cfg
}

// worldOf is like newWorld, without changes to the configurations.
func worldOf(t *testing.T, seed uint64, client, server rcp.Config) *world {
	t.Helper()
	w := &world{t: t, now: 1}
	router := func(cfg rcp.Config, addr netip.AddrPort, stream uint64) *end {
		cfg.Rand = rand.New(rand.NewPCG(seed, stream))
		r, err := rcp.NewRouter(cfg)
		require.NoError(t, err)
		return &end{
			Router: r, addr: addr, rng: rand.New(rand.NewPCG(seed, stream+100)),
			wire: faults{delay: 30 * time.Microsecond},
		}
	}
	w.a, w.b = router(client, clientAddr, 1), router(server, serverAddr, 2)
	w.a.peer, w.b.peer = w.b, w.a
	require.NoError(t, w.b.Listen(4))
	return w
}

// both sets the faults of both directions.
func (w *world) both(f faults) { w.a.wire, w.b.wire = f, f }

// after schedules an event.
func (w *world) after(d time.Duration, do func()) {
	w.n++
	heap.Push(&w.events, event{w.now.Add(d), w.n, do})
}

// drain puts the packets that an end sends on the link.
func (w *world) drain(e *end) {
	var d rcp.Datagram
	for e.Output(w.now, &d) {
		if d.Peer != e.peer.addr { // calling require would take half of the test's time
			w.t.Fatalf("a datagram is for %v, not for %v", d.Peer, e.peer.addr)
		}
		e.carried++
		if e.log != nil {
			e.log(w.now, d.Data)
		}
		lost := e.rng.Float64() < e.wire.loss || e.wire.lose != nil && e.wire.lose(d.Data)
		if lost {
			continue
		}
		copies := 1
		if e.wire.dup > 0 && e.rng.Float64() < e.wire.dup {
			copies = 2
		}
		for range copies {
			b := append([]byte(nil), d.Data...)
			delay := e.wire.delay
			if e.wire.jit > 0 {
				delay += time.Duration(e.rng.Int64N(int64(e.wire.jit)))
			}
			w.after(delay, func() { e.peer.Input(w.now, e.addr, b) })
		}
	}
}

// step advances to the next event. It returns false if no event is pending.
func (w *world) step() bool {
	next := clock.Earliest(w.a.Deadline(), w.b.Deadline())
	if len(w.events) > 0 {
		next = clock.Earliest(next, w.events[0].at)
	}
	if next == clock.Never {
		return false
	}
	w.now = max(w.now, next)
	for len(w.events) > 0 && w.events[0].at <= w.now {
		heap.Pop(&w.events).(event).do()
	}
	for _, app := range w.apps {
		app()
	}
	for _, e := range []*end{w.a, w.b} {
		e.Advance(w.now)
		w.drain(e)
	}
	for _, app := range w.apps { // Advance may have closed a socket
		app()
	}
	return true
}

// until steps until the condition holds. It fails after limit.
func (w *world) until(limit time.Duration, what string, ok func() bool) {
	w.t.Helper()
	for stop := w.now.Add(limit); !ok(); {
		if !w.step() {
			w.t.Fatalf("no event is pending, and still not: %s", what)
		}
		if w.now >= stop {
			w.t.Fatalf("too late: %s", what)
		}
	}
}

// run steps for the duration d.
func (w *world) run(d time.Duration) {
	for stop := w.now.Add(d); w.now < stop && w.step(); {
	}
}

// connect opens a socket from client to server.
func (w *world) connect() (client, server *rcp.Socket) {
	w.t.Helper()
	client, err := w.a.Connect(w.now, serverAddr)
	require.NoError(w.t, err)
	w.until(time.Second, "accept", func() bool {
		if server == nil {
			server, _ = w.b.Accept()
		}
		return server != nil && client.State() == rcp.Open
	})
	return client, server
}

// echo makes the server send back the data that it receives, and close after the end.
func (w *world) echo() {
	var sockets []*rcp.Socket
	p := make([]byte, 4096)
	w.apps = append(w.apps, func() {
		if s, ok := w.b.Accept(); ok {
			sockets = append(sockets, s)
		}
		for _, s := range sockets {
			for s.Tx().Free() > 0 {
				n := s.Rx().Read(p[:min(len(p), s.Tx().Free())])
				if n == 0 {
					break
				}
				s.Tx().Write(p[:n])
			}
			if s.Finished() && s.Rx().Len() == 0 {
				s.Close()
			}
		}
	})
}

// noise returns n bytes that depend on the seed.
func noise(seed uint64, n int) []byte {
	source := rand.NewPCG(seed, 1)
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, source.Uint64())
	}
	return b[:n]
}
