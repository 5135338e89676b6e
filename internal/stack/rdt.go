package stack

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rdt"
)

// OpenRDTServer opens a port where a server of RDT gives its objects to everybody who asks,
// on one of the node's addresses, or on all, as BindUDP. The stack owns the server then.
func (s *Stack) OpenRDTServer(local netip.AddrPort, server *rdt.Server) (*Port, error) {
	return s.openPort(local, netip.AddrPort{}, &serving{Server: server})
}

// OpenRDTReceiver opens a port where a receiver of RDT asks one server, as DialUDPFrom. The
// stack owns the receiver then.
func (s *Stack) OpenRDTReceiver(
	local, server netip.AddrPort, receiver *rdt.Receiver,
) (*Port, error) {
	return s.openPort(local, server, &receiving{Receiver: receiver})
}

// serving is a server of RDT as an engine.
type serving struct {
	*rdt.Server
	packet []byte
}

func (e *serving) output(now clock.Time) (to netip.AddrPort, payload []byte, ok bool) {
	to, e.packet, ok = e.Output(now, e.packet[:0])
	return to, e.packet, ok
}

// receiving is a receiver of RDT as an engine.
type receiving struct {
	*rdt.Receiver
	packet []byte
}

// Input implements engine. The socket is connected, so it can only be from the server.
func (e *receiving) Input(now clock.Time, _ netip.AddrPort, payload []byte) {
	e.Receiver.Input(now, payload)
}

func (e *receiving) output(now clock.Time) (to netip.AddrPort, payload []byte, ok bool) {
	e.packet, ok = e.Output(now, e.packet[:0])
	return to, e.packet, ok
}
