package internet

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tidepool-net/tidepool"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// Host is a host or a router of a World.
type Host struct {
	world *World
	name  string
	file  tidepool.File
	ends  map[string]*tidepool.PipeEnd // pipe ends of its links, by interface
	sent  map[string]*packets          // packets sent, by interface
	addrs []netip.Addr
	nats  []string // interfaces with a NAT

	mu     sync.Mutex
	node   *tidepool.Node
	ctx    context.Context //nolint:containedctx // stored because Context returns it
	cancel context.CancelFunc
	down   bool
	seed   uint64
	starts int // number of captures started
	paused bool
	fails  int // number of faults of Faults that keep the host down
	pauses int // number of faults of Faults that pause the host
	skew   skew
	main   func(*Host)
	mains  sync.WaitGroup

	openMu sync.Mutex
	open   map[*opened]any // connections, listeners and sockets that the program has open
}

func newHost(w *World, name string, c *lnx.Config, file tidepool.File) *Host {
	h := &Host{
		world: w, name: name, file: file, ends: map[string]*tidepool.PipeEnd{},
		sent: map[string]*packets{}, open: map[*opened]any{}, down: true,
		addrs: c.HostAddrs(),
	}
	for _, n := range c.NATs {
		h.nats = append(h.nats, n.Iface)
	}
	sum := fnv.New64a()
	_, _ = io.WriteString(sum, name) // never fails
	h.seed = sum.Sum64() ^ w.seed*0x9e3779b97f4a7c15
	if len(c.DNS.Servers) == 0 {
		h.file.Lookup = w.lookup
	}
	h.file.Sent = func(iface string, pieces [][]byte) {
		h.sent[iface].add(w.clock.Now().UnixNano(), pieces)
	}
	return h
}

// start starts the host's node.
func (h *Host) start() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.world.ended() {
		return nil
	}
	h.file.Links = map[string]io.ReadWriteCloser{}
	for name, end := range h.ends {
		h.file.Links[name] = end
	}
	h.starts++
	h.file.Seed = max(1, h.seed+uint64(h.starts)) // a restarted host gets other random numbers
	if h.world.captures != "" {
		name := fmt.Sprintf("%s-%d.pcapng", h.name, h.starts)
		h.file.Capture = filepath.Join(h.world.captures, name)
	}
	n, err := h.file.Open()
	if err != nil {
		return err
	}
	h.node, h.down, h.paused = n, false, false
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return nil
}

// stop closes the node when the test ends or has failed.
func (h *Host) stop() {
	h.mu.Lock()
	down := h.down
	h.down = true
	h.mu.Unlock()
	if down {
		return
	}
	h.cancel()
	if err := h.node.Crash(); err != nil {
		h.world.t.Errorf("internet: host %s: %v", h.name, err)
	}
}

// Name returns the host's name, by which other hosts find it.
func (h *Host) Name() string { return h.name }

// Addrs returns the host's addresses.
func (h *Host) Addrs() []netip.Addr { return slices.Clone(h.addrs) }

// Node returns the node that runs the host, until the host crashes. The node has methods that Host
// lacks.
func (h *Host) Node() *tidepool.Node {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.node
}

// Context returns a context that ends when the host crashes, or when the test closes the host.
// After Restart the host has a new context.
func (h *Host) Context() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ctx
}

// Listen is like Node.Listen. A TCP listener is a *Listener, whose connections are *Conns.
func (h *Host) Listen(network, address string) (net.Listener, error) {
	ln, err := h.Node().Listen(network, address)
	if tcp, ok := ln.(*tidepool.Listener); ok && err == nil {
		l := &Listener{Listener: tcp}
		l.accepts.set = tcp.SetDeadline
		l.what = func() string { return fmt.Sprintf("the listener %v", l.Addr()) }
		h.remember(&l.opened, l)
		return l, nil
	}
	return ln, err
}

// ListenPacket is like Node.ListenPacket. A UDP socket is a *PacketConn.
func (h *Host) ListenPacket(network, address string) (net.PacketConn, error) {
	pc, err := h.Node().ListenPacket(network, address)
	if err != nil {
		return nil, err
	}
	if udp, ok := pc.(*tidepool.PacketConn); ok {
		return h.hold(udp).(*PacketConn), nil
	}
	return pc, nil
}

// Dial is like Node.Dial. The address may contain the name of a host, as in "db1:5432".
func (h *Host) Dial(network, address string) (net.Conn, error) {
	return h.DialContext(context.Background(), network, address)
}

// DialContext is like Node.DialContext. It can be used by http.Transport and others that take a
// dial function.
func (h *Host) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := h.Node().DialContext(ctx, network, address)
	h.world.calls.Add(1)
	if err != nil {
		return nil, err
	}
	return h.hold(c), nil
}

// Pause stops the host as if its machine was suspended, until Resume: its stack receives and sends
// nothing, and its timers do not expire. Up to 1024 packets wait on each of its links; further ones
// wait at hosts, and are lost at routers. After Resume, the stack's timers see that time has
// passed. The program's goroutines continue. Calls that need the stack, such as Dial, wait until
// Resume, even beyond their deadlines. If a link changes in the meantime, the host notices that on
// Resume.
func (h *Host) Pause() {
	h.world.happens("%s pauses", h.name)
	h.pause(true)
}

// Resume ends the pause.
func (h *Host) Resume() {
	h.world.t.Helper()
	h.world.happens("%s resumes", h.name)
	h.pause(false)
	for _, l := range h.world.links {
		l.renew(h)
	}
}

func (h *Host) pause(paused bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused = paused
	h.world.clock.Pause(h.node, paused)
}

func (h *Host) isDown() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.down
}

// Skew sets the host's clock, which Now returns. The clock is ahead of the network's time by a
// duration, or behind if it is negative, and gains drift seconds per second. Connections, deadlines
// and the timers of package time use the network's time.
func (h *Host) Skew(ahead time.Duration, drift float64) {
	h.world.happens("the clock of %s is ahead by %v, and gains %v s a second", h.name, ahead, drift)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.skew = skew{time.Now(), ahead, drift}
}

// Now returns the time of the host's clock. Programs that take a time function, such as the Time of
// tls.Config, can use it. A crash does not change the clock.
func (h *Host) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	return now.Add(h.skew.ahead + time.Duration(float64(now.Sub(h.skew.since))*h.skew.drift))
}

// skew is the difference between a host's clock and the network's time.
type skew struct {
	since time.Time
	ahead time.Duration
	drift float64
}

// Resolver resolves names. With a line `dns HOST` in the network, it asks the DNS server of HOST,
// over the network's links. Without such a line, it knows the names of all hosts.
func (h *Host) Resolver() *net.Resolver { return h.Node().Resolver() }

// Crash ends the host as a power failure does. Its connections vanish without a FIN or RST, so
// their other ends stay open until a timeout. Calls at the host return net.ErrClosed. The test must
// end the program's goroutines.
func (h *Host) Crash() {
	h.world.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down {
		if !h.world.ended() {
			h.world.t.Errorf("internet: Crash: host %s is down", h.name)
		}
		return
	}
	h.down = true
	h.world.happens("%s crashes", h.name)
	h.cancel()
	h.openMu.Lock()
	clear(h.open)
	h.openMu.Unlock()
	if err := h.node.Crash(); err != nil && !errors.Is(err, syscall.EINVAL) {
		h.world.t.Errorf("internet: Crash: host %s: %v", h.name, err)
	}
}

// Go calls main, the host's program, in a new goroutine. The test ends only when main has returned.
// At the latest, main should return when the test closes the host: its calls then return
// net.ErrClosed. Restart calls only the last main again, so start all of a host's programs in one
// main.
func (h *Host) Go(main func(*Host)) {
	h.world.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down && !h.world.ended() {
		h.world.t.Errorf("internet: Go: host %s is down: Restart starts it and its program", h.name)
		return
	}
	h.main = main
	h.mains.Go(func() { main(h) })
}

// Restart starts a crashed host again, with empty tables and without connections. It also starts
// the host's program: main, or the last program if main is nil.
func (h *Host) Restart(main func(*Host)) {
	h.world.t.Helper()
	h.mu.Lock()
	down := h.down
	if main == nil {
		main = h.main
	}
	h.mu.Unlock()
	if h.world.ended() {
		return
	}
	if !down {
		h.world.t.Errorf("internet: Restart: host %s is running: crash it first", h.name)
		return
	}
	for _, end := range h.ends {
		end.Reopen()
	}
	if err := h.start(); err != nil {
		h.world.t.Errorf("internet: Restart: host %s: %v", h.name, err)
		return
	}
	h.world.happens("%s starts again", h.name)
	for _, l := range h.world.links {
		l.renew(h)
	}
	if main != nil {
		h.Go(main)
	}
}

// fail and recover are Crash and Restart for faults that overlap: the host restarts when the last
// of them ends.
func (h *Host) fail() {
	h.mu.Lock()
	h.fails++
	crash := h.fails == 1 && !h.down
	h.mu.Unlock()
	if crash {
		h.Crash()
	}
}

func (h *Host) recover() {
	h.mu.Lock()
	h.fails--
	restart := h.fails == 0 && h.down
	h.mu.Unlock()
	if restart {
		h.Restart(nil)
	}
}

// suspend and wake are Pause and Resume for faults that overlap.
func (h *Host) suspend() {
	h.mu.Lock()
	h.pauses++
	pause := h.pauses == 1 && !h.down
	h.mu.Unlock()
	if pause {
		h.Pause()
	}
}

func (h *Host) wake() {
	h.mu.Lock()
	h.pauses--
	resume := h.pauses == 0 && h.paused
	h.mu.Unlock()
	if resume {
		h.Resume()
	}
}
