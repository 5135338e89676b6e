package node

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/rcp"
)

// operatorSilence is what an operator's connections bear if he does not say: a busy machine
// is not a peer that has gone, and 20 % of loss are none either.
const operatorSilence = 500 * time.Millisecond

// operatorBuffer is what may wait to be sent, for the document's buffers have no end, and
// operatorRTO is how long a packet waits for its timer at the most: the document's time-out.
const (
	operatorBuffer = 1 << 20
	operatorRTO    = 100 * time.Millisecond
)

func rcpConfig(o control.RCPOptions) RCPConfig {
	cfg := RCPConfig{
		Width: o.Width, Window: o.Window, Timer: o.Timer, Timeout: o.Timeout,
		SendBuffer: operatorBuffer,
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = operatorSilence
	}
	cfg.MaxRTO = min(cfg.Timeout, operatorRTO)
	return cfg
}

// rcpRequest carries out the requests about RCP.
func (n *Node) rcpRequest(ctx context.Context, req any) (any, error) {
	switch r := req.(type) {
	case control.RCPEcho:
		return n.echoRCP(r)
	case control.RCPClose:
		return control.Nothing{}, n.closeRCP(r)
	case control.RCPCount:
		return n.countRCP(ctx, r)
	}
	var list []control.RCPSocket
	err := n.call(func(clock.Time) { list = n.rcpSockets() })
	return list, controlError(err)
}

// rcpSockets lists RCP's ports and connections. The loop's.
func (n *Node) rcpSockets() []control.RCPSocket {
	list := []control.RCPSocket{}
	for _, port := range n.stack.Ports() {
		p, ok := port.UDP.Owner.(*rcpPort)
		if !ok {
			continue
		}
		if p.listener != nil {
			list = append(list, control.RCPSocket{
				Local: port.UDP.Local(), Remote: netip.AddrPortFrom(netip.IPv4Unspecified(), 0),
				State: "listening", RCPCounts: rcpCounts(p.port.Router.Counts()),
			})
		}
		for s := range p.port.Router.Sockets() {
			if c, ok := s.Owner.(*RCPConn); ok {
				list = append(list, c.describe())
			}
		}
	}
	return list
}

// describe is what operators see. The loop's.
func (c *RCPConn) describe() control.RCPSocket {
	i := c.socket.Info()
	return control.RCPSocket{
		Local: c.local(), Remote: c.peer(), State: i.State.String(),
		Unacked: int(i.Nxt - i.Una), Held: i.Held, Unsent: i.Unsent, Unread: i.Unread,
		SRTT: i.SRTT, RCPCounts: rcpCounts(i.Counts),
	}
}

func rcpCounts(c rcp.Counts) control.RCPCounts {
	n := control.RCPCounts{
		DAT: c.DAT, ACK: c.ACK, FIN: c.FIN, Again: c.Again, Received: c.Received,
	}
	for _, dropped := range c.Dropped {
		n.Dropped += dropped
	}
	return n
}

// echoRCP opens an echo server, which ends with its port.
func (n *Node) echoRCP(r control.RCPEcho) (control.RCPPort, error) {
	on := netip.AddrPortFrom(netip.IPv4Unspecified(), r.Port)
	l, err := n.ListenRCP(on, 0, rcpConfig(r.Options))
	if err != nil {
		return control.RCPPort{}, fmt.Errorf("port %d: %w", r.Port, control.Reason(err))
	}
	go func() {
		for {
			c, err := l.AcceptRCP()
			if err != nil {
				return
			}
			go c.echo()
		}
	}()
	return control.RCPPort{Local: l.addr}, nil
}

// echo writes back what comes, to its end. There are as many as the router has sockets.
func (c *RCPConn) echo() {
	buf := make([]byte, 16<<10)
	for {
		k, err := c.Read(buf)
		if err == nil {
			_, err = c.Write(buf[:k])
		}
		if err != nil {
			_ = c.Close() // whoever was there has closed too, or is gone
			return
		}
	}
}

// closeRCP ends what RCP has on a port.
func (n *Node) closeRCP(r control.RCPClose) error {
	found := false
	err := n.call(func(clock.Time) {
		for _, port := range n.stack.Ports() {
			p, ok := port.UDP.Owner.(*rcpPort)
			if found = ok && port.UDP.Local().Port() == r.Port; found {
				p.shut()
				return
			}
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("RCP on port %d: %w", r.Port, control.ErrNoSuchSocket)
	}
	return controlError(err)
}
