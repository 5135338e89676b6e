package workload

import (
	"bytes"
	"fmt"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// engine is an end of a flow of RDT.
type engine interface {
	Input(now clock.Time, b []byte)
	InputSound(now clock.Time, b []byte)
	Output(now clock.Time, b []byte) ([]byte, bool)
	Deadline() clock.Time
	Advance(now clock.Time)
}

type end struct {
	engine
	peer netip.AddrPort // address of the other end; invalid: no request yet
	buf  []byte
	cost time.Duration
	idle clock.Time // the engine is busy sending until then
	// after is called when the engine has processed its input.
	after func()
}

// Turn implements sim.DatagramApp: it passes the received datagrams to the engine, and the engine's
// datagrams to the host while it has room.
func (e *end) Turn(now clock.Time, s *sim.Socket) {
	for r, ok := s.Receive(e.buf); ok; r, ok = s.Receive(e.buf) {
		e.peer = r.From
		if r.Checked {
			e.InputSound(now, e.buf[:r.Len])
		} else {
			e.Input(now, e.buf[:r.Len])
		}
	}
	if e.Deadline().Due(now) {
		e.Advance(now)
	}
	for e.idle <= now && e.peer.IsValid() && s.Roomy() {
		b, ok := e.Output(now, e.buf[:0])
		if !ok || s.Send(e.peer, b) != nil {
			break
		}
		e.idle = now.Add(max(0, e.cost))
	}
	if e.after != nil {
		e.after()
	}
	due := e.Deadline()
	if e.idle > now {
		due = clock.Earliest(due, e.idle)
	}
	s.Wake(due)
}

const datagramBytes = 1 << 16

// attachRDT makes the client request the objects in the order in which they are to be sent.
func attachRDT(
	a *ObjectsApp, client, server *sim.Host, at netip.AddrPort, cfg *ObjectsConfig,
) error {
	var data [][]byte
	for i := range a.items {
		data = append(data, a.items[i].Data)
	}
	var wanted []uint16
	for _, i := range order(cfg, a.items) {
		wanted = append(wanted, uint16(i))
	}
	from, err := rdt.NewSender(cfg.RDT, data)
	if err != nil {
		return fmt.Errorf("objects: %w", err)
	}
	to, err := rdt.NewReceiver(a.began, cfg.RDT, wanted...)
	if err != nil {
		return fmt.Errorf("objects: %w", err)
	}
	var sockets [2]*sim.Socket
	a.counts = func(r *ObjectsResult) {
		s, c := from.Info(), to.Info()
		r.Sent, r.Data, r.Again, r.SentBytes = s.Sent, s.Sent, s.Resent, s.SentBytes
		r.ClientSent = c.Acks + c.Requests
		r.Timeouts, r.Recoveries = s.TimedOut, s.FastResent
		r.Damaged = s.Drops[rdt.DropChecksum] + c.Drops[rdt.DropChecksum]
		r.Overflowed = 0
		for _, socket := range sockets {
			if socket != nil {
				r.Overflowed += socket.UDP().Info().Dropped
			}
		}
	}
	ends := [2]*end{
		{engine: from, buf: make([]byte, datagramBytes), cost: cfg.Cost},
		{
			engine: to, buf: make([]byte, datagramBytes), cost: cfg.Cost, peer: at,
			after: func() { collect(a, to, from) },
		},
	}
	if sockets[0], err = server.BindUDP(at.Port(), ends[0]); err != nil {
		return err
	}
	sockets[0].SetReceiveBuffer(cfg.Buffer)
	if sockets[1], err = client.DialUDP(at, ends[1]); err != nil {
		return err
	}
	sockets[1].SetReceiveBuffer(cfg.Buffer)
	return nil
}

// collect takes the objects that the receiver has completed.
func collect(a *ObjectsApp, to *rdt.Receiver, from *rdt.Sender) {
	for c, ok := to.Next(); ok; c, ok = to.Next() {
		i := int(c.Stream)
		if c.Began != clock.Never {
			a.begin(i, c.Began)
		}
		if c.Err == nil {
			a.complete(i, c.At, bytes.Equal(c.Data, a.items[i].Data))
			continue
		}
		why := c.Err
		if err := from.Err(); err != nil {
			why = fmt.Errorf("%w, and the client does not answer the server", err)
		}
		a.fail(why.Error())
	}
}
