// Package hub runs one network for a class. Each student has a link over UDP to the hub's router, a
// subnet, and a token that authenticates the student.
//
// hub.go has the router and the links. gate.go checks the packets of students before the router
// sees them, riproutes.go their RIP messages, and observe.go counts what the router forwards.
// students.go and state.go read and write files, web.go serves the page.
package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool"
)

// MaxStudents is the largest number of students: each has a /24 of a /16.
const MaxStudents = 250

const (
	pingEvery = 10 * time.Second
	saveEvery = 30 * time.Second

	socketBuffer = 4 << 20 // the system may grant a smaller buffer
)

// Config describes a hub.
type Config struct {
	// ListenUDP is the address at which Run receives packets, HTTP the address of the page: each is
	// HOST:PORT.
	ListenUDP, HTTP string
	// Private shows the page only to clients with a token.
	Private bool
	// Students are the entries of the students file.
	Students []Listed
	// State is the file that keeps tokens, addresses and counters over a restart. Empty: they are
	// not kept.
	State string
	// Network is the /16 that contains all subnets. The zero Prefix: 10.77.0.0/16.
	Network netip.Prefix
	// Public is the HOST:PORT to which students' nodes send their packets.
	Public string
	// Rate limits the packets per second of a student. 0: 5000.
	Rate int
	// Warn is called if the state cannot be saved. It may be nil.
	Warn func(error)
	// Most is the maximum number of students, up to MaxStudents. 0: 100.
	Most int
}

// InvalidError is the error of an invalid value in a Config. Its text begins with the value's name.
type InvalidError struct{ error }

func invalid(format string, a ...any) error { return InvalidError{fmt.Errorf(format, a...)} }

// Hub is the router with the state of its students.
type Hub struct {
	cfg  Config
	node *tidepool.Node
	send func(to netip.AddrPort, packet []byte)
	work sync.WaitGroup
	done chan struct{}

	saving         sync.Mutex // locked before mu
	mu             sync.Mutex
	teacher        string // the teacher's token
	slots          []*student
	pinned         map[netip.AddrPort]*student
	unknownSources uint64 // packets from addresses that belong to no student
	links          []*tidepool.PipeEnd
	flows          map[flowKey]*flow
	cells          map[pair]*Cell
}

// New opens a hub. It calls send for each packet to a student; send must not block. The caller
// passes arriving packets to Receive.
func New(cfg Config, send func(to netip.AddrPort, packet []byte)) (*Hub, error) {
	if !cfg.Network.IsValid() {
		cfg.Network = netip.MustParsePrefix("10.77.0.0/16")
	}
	if cfg.Network.Bits() != 16 || !cfg.Network.Addr().Is4() ||
		cfg.Network != cfg.Network.Masked() {
		return nil, invalid("network %v: must be an IPv4 prefix of 16 bits, such as "+
			"10.77.0.0/16", cfg.Network)
	}
	if cfg.Rate == 0 {
		cfg.Rate = 5000
	}
	if cfg.Most == 0 {
		cfg.Most = 100
	}
	if cfg.Rate < 0 {
		return nil, invalid("rate %d: must be above 0", cfg.Rate)
	}
	if cfg.Most < 0 || cfg.Most > MaxStudents {
		return nil, invalid("most %d: must be 1 to %d", cfg.Most, MaxStudents)
	}
	if _, _, err := net.SplitHostPort(cfg.Public); err != nil {
		return nil, invalid("public %q: must be HOST:PORT", cfg.Public)
	}
	h := &Hub{
		cfg: cfg, send: send, done: make(chan struct{}),
		slots: make([]*student, cfg.Most+1), pinned: map[netip.AddrPort]*student{},
		flows: map[flowKey]*flow{}, cells: map[pair]*Cell{},
	}
	if err := h.load(); err != nil {
		return nil, err
	}
	if err := h.start(); err != nil {
		return nil, err
	}
	return h, nil
}

// start opens the router. It has an interface for each possible student. Interfaces without a
// student are down, so that RIP does not announce them.
func (h *Hub) start() error {
	var text strings.Builder
	own := h.address(0, 1)
	fmt.Fprintf(&text, "routing rip\ninterface s0 %v/24 127.0.0.1:1000\n"+
		"rip originate prefix %[1]v/32\n", own)
	h.links = make([]*tidepool.PipeEnd, len(h.slots))
	var inner *tidepool.PipeEnd
	inner, h.links[0] = tidepool.Pipe(0) // this link has no other address than the hub's
	links := map[string]io.ReadWriteCloser{ifaceName(0): inner}
	for i := 1; i < len(h.slots); i++ {
		inner, h.links[i] = tidepool.Pipe(0)
		links[ifaceName(i)] = inner
		host := h.host(i)
		// Nodes from the oldest courses only know routes to single addresses.
		fmt.Fprintf(&text, "interface %s %v/24 127.0.0.1:%d\n"+
			"neighbor %v at 127.0.0.1:%d via %[1]s\nrip advertise-to %[4]v\n"+
			"route %[4]v/32 via %[4]v\nrip originate prefix %[4]v/32\n",
			ifaceName(i), h.router(i), 1000+i, host, 2000+i)
	}
	file := tidepool.File{Path: "hub.lnx", Text: []byte(text.String()), Links: links}
	node, err := file.Open()
	if err != nil {
		return err
	}
	h.node = node
	for i := 1; i < len(h.slots); i++ {
		if h.slots[i] == nil {
			if err := node.SetUp(ifaceName(i), false); err != nil {
				return errors.Join(err, node.Close())
			}
		}
		h.work.Go(func() { h.transmit(i) })
	}
	h.work.Go(func() { h.periodically(pingEvery, h.pingAll) })
	h.work.Go(func() { h.periodically(saveEvery, h.keep) })
	return nil
}

// Close stops the router and saves the state.
func (h *Hub) Close() error {
	close(h.done)
	err := h.node.Close()
	for _, l := range h.links {
		err = errors.Join(err, l.Close())
	}
	h.work.Wait()
	return errors.Join(err, h.Save())
}

func ifaceName(slot int) string { return fmt.Sprintf("s%d", slot) }

// address returns an address of a slot's subnet.
func (h *Hub) address(slot int, last byte) netip.Addr {
	b := h.cfg.Network.Addr().As4()
	return netip.AddrFrom4([4]byte{b[0], b[1], byte(slot), last})
}

// router returns the hub's address on a student's link, host the student's address.
func (h *Hub) router(slot int) netip.Addr { return h.address(slot, 1) }
func (h *Hub) host(slot int) netip.Addr   { return h.address(slot, 2) }

// subnet returns the network of a student.
func (h *Hub) subnet(slot int) netip.Prefix {
	return netip.PrefixFrom(h.address(slot, 0), 24)
}

// owner returns the student whose subnet contains an address, or nil.
func (h *Hub) owner(a netip.Addr) *student {
	if !h.cfg.Network.Contains(a) {
		return nil
	}
	if slot := int(a.As4()[2]); slot < len(h.slots) {
		return h.slots[slot]
	}
	return nil
}

// keep saves the state, and warns if that fails.
func (h *Hub) keep() {
	if err := h.Save(); err != nil && h.cfg.Warn != nil {
		h.cfg.Warn(err)
	}
}

// Receive processes a packet that arrived from a UDP address.
func (h *Hub) Receive(from netip.AddrPort, packet []byte) {
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	h.mu.Lock()
	s, packet := h.admit(from, packet, time.Now())
	h.mu.Unlock()
	if s != nil {
		// An error means that the hub is closed.
		_, _ = h.links[s.Slot].Write(packet)
	}
}

// transmit sends the router's packets on a student's link.
func (h *Hub) transmit(slot int) {
	packet := make([]byte, 65536)
	for {
		n, err := h.links[slot].Read(packet)
		if err != nil {
			return
		}
		h.mu.Lock()
		var to netip.AddrPort
		if s := h.slots[slot]; s != nil && s.Address.IsValid() {
			to = s.Address
			h.observe(s, packet[:n], time.Now())
		}
		h.mu.Unlock()
		if to.IsValid() {
			h.send(to, packet[:n])
		}
	}
}

func (h *Hub) periodically(d time.Duration, f func()) {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case <-h.done:
			return
		case <-t.C:
			f()
		}
	}
}

// pingAll sends an echo request to each student's node.
func (h *Hub) pingAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.slots {
		if s == nil || !s.Address.IsValid() {
			continue
		}
		host, source := h.host(s.Slot).String(), h.address(0, 1)
		h.work.Go(func() {
			r, err := h.node.Ping(context.Background(), host,
				tidepool.PingOptions{Source: source, Timeout: pingEvery / 2})
			h.mu.Lock()
			defer h.mu.Unlock()
			s.rtt = 0
			if err == nil && r.Received > 0 {
				s.rtt, s.pinged = r.Min, time.Now()
			}
		})
	}
}

// Serve receives packets from a socket until it is closed.
func (h *Hub) Serve(c *net.UDPConn) error {
	err := errors.Join(c.SetReadBuffer(socketBuffer), c.SetWriteBuffer(socketBuffer))
	if err != nil {
		return err
	}
	packet := make([]byte, 65536)
	for {
		n, from, err := c.ReadFromUDPAddrPort(packet)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err == nil:
			h.Receive(from, packet[:n])
		case !errors.Is(err, errRefused):
			return err
		}
	}
}
