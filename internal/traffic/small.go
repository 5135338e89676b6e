package traffic

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// smallPorts are the ports of the small services.
var smallPorts = map[control.SmallService]uint16{
	control.ServiceEcho: 7, control.ServiceDiscard: 9, control.ServiceChargen: 19,
}

// answersAll are ports from which no datagram is answered: what is there answers too, and two
// would keep each other busy for ever.
var answersAll = map[uint16]bool{7: true, 13: true, 17: true, 19: true, 37: true}

const (
	smallChunk   = 16 << 10
	chargenLine  = 72  // RFC 864: of 95 printing characters
	chargenBytes = 512 // RFC 864: of a datagram, at the most
)

// serveSmall opens a server of RFC 862, 863 or 864.
func (h *Host) serveSmall(r control.ServeSmall) (control.Socket, error) {
	port, ok := smallPorts[r.Service]
	if !ok {
		return control.Socket{}, control.Misuse("service %q: want echo, discard or chargen",
			r.Service)
	}
	if r.Port != 0 {
		port = r.Port
	}
	on := netip.AddrPortFrom(netip.IPv4Unspecified(), port)
	l, err := h.node.Listen(on, 0)
	if err != nil {
		return control.Socket{}, fmt.Errorf("%s: port %d: %w", r.Service, port, control.Reason(err))
	}
	c, err := h.node.ListenPacket(on)
	if err != nil {
		_ = l.Close() // nobody knows of it yet
		return control.Socket{}, fmt.Errorf("%s: UDP port %d: %w", r.Service, port,
			control.Reason(err))
	}
	few := &fewAtATime{Listener: l, room: make(chan struct{}, maxServed)}
	go func() {
		for {
			conn, err := few.Accept()
			if err != nil {
				_ = c.Close()
				return
			}
			go smallTCP(r.Service, conn)
		}
	}()
	go smallUDP(r.Service, c)
	return l.Socket()
}

// smallTCP serves one connection to its end. Who is gone without a word is noticed by keepalive.
func smallTCP(service control.SmallService, conn net.Conn) {
	defer conn.Close()
	if s, ok := conn.(*served); ok {
		s.Guard()
	}
	buf := make([]byte, smallChunk)
	for line := 0; ; line++ {
		var k int
		var err error
		if service == control.ServiceChargen {
			_, err = conn.Write(chargen(line))
		} else if k, err = conn.Read(buf); err == nil && service == control.ServiceEcho {
			_, err = conn.Write(buf[:k])
		}
		if err != nil {
			return
		}
	}
}

// smallUDP answers datagrams until the socket is closed.
func smallUDP(service control.SmallService, c *node.PacketConn) {
	buf := make([]byte, 1<<16)
	for line := 0; ; line++ {
		k, from, err := c.ReadFromAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || service == control.ServiceDiscard || answersAll[from.Port()] {
			continue
		}
		answer := buf[:k]
		if service == control.ServiceChargen {
			answer = chargen(line)
		}
		_, _ = c.WriteToAddrPort(answer, from) // what is lost is lost
	}
}

// chargen is some lines of RFC 864's pattern, from one on: each begins a character further on.
func chargen(line int) []byte {
	b := make([]byte, 0, chargenBytes)
	for len(b)+chargenLine+2 <= chargenBytes {
		for i := range chargenLine {
			b = append(b, byte(' '+(line+i)%95))
		}
		b = append(b, '\r', '\n')
		line++
	}
	return b
}
