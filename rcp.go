package tidepool

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/node"
)

// RCP configures one end of the sliding-fence transport of founding document 000. It is a byte
// stream over UDP. Its receiver acknowledges each packet in a fence individually, and its sender
// retransmits the other packets every Tick. Zero fields mean the values of the document, except for
// Timeout. Both ends should have the same Width.
type RCP struct {
	// Width is the number of packets in the fence, 1 to 1024. 0: 32.
	Width int
	// PacketSize is the largest payload of a packet in bytes. 0: 256.
	PacketSize int
	// Window uses only the contiguous part of an acknowledgment, like the classic sliding window.
	Window bool
	// Timer retransmits a packet when its retransmission timer expires (RFC 6298), not every Tick.
	Timer bool
	// Tick is the time between two iterations of the send loop. 0: 10 ms.
	Tick time.Duration
	// Timeout is the silence after which a connection fails with syscall.ETIMEDOUT. 0: 3 s, but at
	// least ten Ticks. It must exceed the round-trip time. The document's value is ten Ticks, which
	// is too short on a busy machine.
	Timeout time.Duration
}

func (r RCP) config() node.RCPConfig {
	return node.RCPConfig{
		Width: r.Width, PacketSize: r.PacketSize, Window: r.Window, Timer: r.Timer,
		Tick: r.Tick, Timeout: r.Timeout,
	}
}

// DialRCP is DialContext for RCP with a netip.AddrPort. The connection uses its own UDP port. A
// dial takes at most RCP.Timeout.
func (d *Dialer) DialRCP(ctx context.Context, to netip.AddrPort) (*RCPConn, error) {
	n := d.node().inner().Node
	ctx, cancel := n.Time.Within(ctx, d.Timeout)
	defer cancel()
	c, err := n.RCP.Dial(ctx, d.LocalAddr, unmap(to), d.RCP.config())
	if err != nil {
		return nil, err
	}
	return &RCPConn{c}, nil
}

func (n *Node) listenRCP(address string) (*RCPListener, error) {
	on, err := n.local("rcp", "rcp", address)
	if err != nil {
		return nil, err
	}
	return n.ListenRCP(on, RCP{})
}

// ListenRCP is Listen for RCP with a netip.AddrPort and the configuration of its connections. The
// zero netip.Addr means all addresses of the node.
func (n *Node) ListenRCP(on netip.AddrPort, how RCP) (*RCPListener, error) {
	if !on.Addr().IsValid() {
		on = n.inner().Node.AllAddrs(on.Port())
	}
	l, err := n.inner().Node.RCP.Listen(unmap(on), 0, how.config())
	if err != nil {
		return nil, err
	}
	return &RCPListener{l}, nil
}

// RCPConn is an RCP connection. It implements net.Conn, and returns the same errors as a Conn.
type RCPConn struct{ conn *node.RCPConn }

var _ net.Conn = (*RCPConn)(nil)

// Read waits for data and copies it into p. It returns io.EOF when the peer has closed its side and
// all data has been read.
func (c *RCPConn) Read(p []byte) (int, error) { return c.inner().Read(p) }

// Write copies p into the send buffer and blocks while the buffer is full. It does not wait for
// delivery.
func (c *RCPConn) Write(p []byte) (int, error) { return c.inner().Write(p) }

// Close closes both directions and returns at once. Data that was written is still delivered,
// unless the peer is silent.
func (c *RCPConn) Close() error { return c.inner().Close() }

// CloseWrite ends the stream after all data that was written (a half-close).
func (c *RCPConn) CloseWrite() error { return c.inner().CloseWrite() }

// LocalAddr returns a *net.UDPAddr.
func (c *RCPConn) LocalAddr() net.Addr { return c.inner().LocalAddr() }

// RemoteAddr returns a *net.UDPAddr.
func (c *RCPConn) RemoteAddr() net.Addr { return c.inner().RemoteAddr() }

// SetDeadline sets the read and the write deadline, like Conn.SetDeadline.
func (c *RCPConn) SetDeadline(t time.Time) error { return c.inner().SetDeadline(t) }

// SetReadDeadline sets the deadline of Read. The zero time means no deadline.
func (c *RCPConn) SetReadDeadline(t time.Time) error { return c.inner().SetReadDeadline(t) }

// SetWriteDeadline sets the deadline of Write. The zero time means no deadline.
func (c *RCPConn) SetWriteDeadline(t time.Time) error { return c.inner().SetWriteDeadline(t) }

// RCPInfo counts a connection's packets.
type RCPInfo struct {
	// Data, Acks and Ends count the DAT, ACK and FIN packets sent. Again counts the retransmissions
	// among them.
	Data, Acks, Ends, Again uint64
	// Received counts the packets that were accepted.
	Received uint64
	// RTT is the smoothed round-trip time. 0: not measured.
	RTT time.Duration
}

// Info returns the counters, also after the connection has ended.
func (c *RCPConn) Info() RCPInfo {
	if c.conn == nil {
		return RCPInfo{}
	}
	i := c.conn.Info()
	return RCPInfo{
		Data: i.Counts.DAT, Acks: i.Counts.ACK, Ends: i.Counts.FIN, Again: i.Counts.Again,
		Received: i.Counts.Received, RTT: i.SRTT,
	}
}

// RCPListener accepts RCP connections at one UDP port. It implements net.Listener.
type RCPListener struct{ listener *node.RCPListener }

var _ net.Listener = (*RCPListener)(nil)

// Accept waits for the next connection.
func (l *RCPListener) Accept() (net.Conn, error) {
	c, err := l.AcceptRCP()
	if err != nil {
		return nil, err // a nil *RCPConn would be a non-nil net.Conn
	}
	return c, nil
}

// AcceptRCP is like Accept, but returns an *RCPConn.
func (l *RCPListener) AcceptRCP() (*RCPConn, error) {
	c, err := l.inner().AcceptRCP()
	if err != nil {
		return nil, err
	}
	return &RCPConn{c}, nil
}

// Close stops listening. Connections that were not accepted are discarded. The port is free once
// the last accepted connection has ended.
func (l *RCPListener) Close() error { return l.inner().Close() }

// Addr returns a *net.UDPAddr.
func (l *RCPListener) Addr() net.Addr { return l.inner().Addr() }

// SetDeadline sets the deadline of Accept. The zero time means no deadline.
func (l *RCPListener) SetDeadline(t time.Time) error { return l.inner().SetDeadline(t) }
