package workload

import (
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// port is RCP on one UDP port, with its user.
type port struct {
	router *rcp.Router
	buf    []byte
	// user is called at each of the port's turns. It returns the time of the next turn that it
	// needs.
	user func(now clock.Time) clock.Time
	// sent, if it is set, observes the packets that leave.
	sent func(now clock.Time, b []byte)
}

// Turn implements sim.DatagramApp. Data that the user writes at the time of an iteration of the
// send loop is part of that iteration.
func (p *port) Turn(now clock.Time, s *sim.Socket) {
	for r, ok := s.Receive(p.buf); ok; r, ok = s.Receive(p.buf) {
		p.router.Input(now, r.From, p.buf[:r.Len])
	}
	next := p.user(now)
	if p.router.Deadline().Due(now) {
		p.router.Advance(now)
		next = p.user(now) // a socket may have ended
	}
	var d rcp.Datagram
	for s.Roomy() && p.router.Output(now, &d) {
		if p.sent != nil {
			p.sent(now, d.Data)
		}
		if s.Send(d.Peer, d.Data) != nil {
			break // the same as a loss: the packet is retransmitted an iteration later
		}
	}
	s.Wake(clock.Earliest(next, p.router.Deadline()))
}

// rcpStream adapts a socket to echoStream.
type rcpStream struct{ *rcp.Socket }

func (s rcpStream) Write(p []byte) int { return s.Tx().Write(p) }
func (s rcpStream) Read(p []byte) int  { return s.Rx().Read(p) }

// newPort returns a port whose router listens with a backlog. If the backlog is 0, the router does
// not listen.
func newPort(h *sim.Host, name string, cfg rcp.Config, backlog int) (*port, error) {
	cfg.Rand = h.World().Rand(h.Name() + " " + name + " loop")
	r, err := rcp.NewRouter(cfg)
	if err != nil {
		return nil, fmt.Errorf("fence: %w", err)
	}
	if backlog > 0 {
		if err := r.Listen(backlog); err != nil {
			return nil, fmt.Errorf("fence: %w", err)
		}
	}
	return &port{router: r, buf: make([]byte, 1<<16)}, nil
}

// newPorts returns a port of the client, and one of the server that listens. Their random streams
// have the given name.
func newPorts(client, server *sim.Host, name string, cfg rcp.Config) (c, s *port, err error) {
	if c, err = newPort(client, name, cfg, 0); err == nil {
		s, err = newPort(server, name, cfg, 1)
	}
	return c, s, err
}

// serve calls a function for each socket of a port, at each turn.
func (p *port) serve(serve func(s *rcp.Socket)) {
	var sockets []*rcp.Socket
	p.user = func(clock.Time) clock.Time {
		for s, ok := p.router.Accept(); ok; s, ok = p.router.Accept() {
			sockets = append(sockets, s)
		}
		for _, s := range sockets {
			serve(s)
		}
		return clock.Never
	}
}

// AttachEcho makes a client on one host write to an echo server on the other, at the address and
// UDP port at. Errors: ErrEchoConfig, the errors of rcp.Config, and a port in use.
func AttachEcho(onto, server *sim.Host, at netip.AddrPort, cfg EchoConfig) (*EchoApp, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c, s, err := newPorts(onto, server, "fence", cfg.RCP)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, 1<<16)
	s.serve(func(s *rcp.Socket) { echo(rcpStream{s}, s.Tx().Free(), buf) })
	if _, err := server.BindUDP(at.Port(), s); err != nil {
		return nil, err
	}
	a := &EchoApp{client: newEchoClient(onto, cfg)}
	a.counts = func(r *EchoResult) {
		n := c.router.Counts()
		r.Sent, r.Data, r.Again, r.Acks = n.Sent(), n.DAT, n.Again, n.ACK
	}
	socket, err := c.router.Connect(onto.World().Now(), at)
	if err != nil {
		return nil, fmt.Errorf("fence: %w", err)
	}
	c.user = func(now clock.Time) clock.Time { return a.turnRCP(now, c.router, socket) }
	c.sent = func(now clock.Time, _ []byte) { a.round(now) }
	_, err = onto.BindUDP(0, c)
	return a, err
}

// turnRCP is the client's turn over RCP.
func (a *EchoApp) turnRCP(now clock.Time, r *rcp.Router, s *rcp.Socket) clock.Time {
	if a.over {
		return clock.Never
	}
	a.client.turn(now, rcpStream{s})
	if !a.checkEnd(s.State() == rcp.Closed, s.Err()) {
		return a.client.due()
	}
	r.Close() // the document's client does not inform the server either
	return clock.Never
}

// round counts the instants at which packets leave.
func (a *EchoApp) round(now clock.Time) {
	if now != a.lastRound {
		a.lastRound = now
		a.result.Rounds++
	}
}
