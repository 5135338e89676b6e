package tidepool

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/node"
)

// RCP is how the sliding-fence transport of founding document 000 behaves at one end: a
// byte stream over UDP, whose receiver says of each packet in a fence whether it has
// arrived, and whose sender repeats the rest every Tick. The zero RCP is the document's, but for
// Timeout.
// Both ends should have the same Width.
type RCP struct {
	// Width is how many packets the fence holds, 1 to 1024; 0: 32.
	Width int
	// PacketSize is how many bytes of the stream a packet carries at the most; 0: 256.
	PacketSize int
	// Window hears only what is contiguous of an acknowledgment, as the classic sliding
	// window does.
	Window bool
	// Timer repeats a packet when its retransmission timer has expired (RFC 6298), and
	// not every Tick.
	Timer bool
	// Tick is the time between two rounds of the send loop; 0: 10 ms.
	Tick time.Duration
	// Timeout is the silence that ends a connection with syscall.ETIMEDOUT; 0: 3 s, and at
	// least ten Ticks. The document has ten Ticks, which a pause of a busy machine exceeds. A
	// round trip must be shorter.
	Timeout time.Duration
}

func (r RCP) config() node.RCPConfig {
	return node.RCPConfig{
		Width: r.Width, PacketSize: r.PacketSize, Window: r.Window, Timer: r.Timer,
		Tick: r.Tick, Timeout: r.Timeout,
	}
}

// DialRCP is DialContext for RCP with an address in its own type. The connection has a UDP
// port of its own. A dial takes at most RCP.Timeout.
func (d *Dialer) DialRCP(ctx context.Context, to netip.AddrPort) (*RCPConn, error) {
	n := d.node().inner().Node
	ctx, cancel := n.Time.Within(ctx, d.Timeout)
	defer cancel()
	c, err := n.DialRCP(ctx, d.LocalAddr, unmap(to), d.RCP.config())
	if err != nil {
		return nil, err
	}
	return &RCPConn{c}, nil
}

func (n *Node) listenRCP(address string) (*RCPListener, error) {
	on, err := n.resolve(context.Background(), "listen", "rcp", "rcp", address)
	if err != nil {
		return nil, err
	}
	return n.ListenRCP(on, RCP{})
}

// ListenRCP is Listen for RCP with an address in its own type, where the zero netip.Addr
// is any address of the node, and with how its connections behave.
func (n *Node) ListenRCP(on netip.AddrPort, how RCP) (*RCPListener, error) {
	if !on.Addr().IsValid() {
		on = netip.AddrPortFrom(netip.IPv4Unspecified(), on.Port())
	}
	l, err := n.inner().Node.ListenRCP(unmap(on), 0, how.config())
	if err != nil {
		return nil, err
	}
	return &RCPListener{l}, nil
}

// RCPConn is a connection of RCP. It implements net.Conn, with the errors of a Conn.
type RCPConn struct{ conn *node.RCPConn }

var _ net.Conn = (*RCPConn)(nil)

// Read waits for data and copies it into p. It returns io.EOF when the peer has closed
// its side and everything was read.
func (c *RCPConn) Read(p []byte) (int, error) { return c.inner().Read(p) }

// Write copies p into the send buffer, waiting while that is full. That it returns says
// nothing about delivery.
func (c *RCPConn) Write(p []byte) (int, error) { return c.inner().Write(p) }

// Close closes both directions and returns at once. What was written is still delivered,
// unless the peer is silent.
func (c *RCPConn) Close() error { return c.inner().Close() }

// CloseWrite ends what the peer reads, behind all that was written: a half-close.
func (c *RCPConn) CloseWrite() error { return c.inner().CloseWrite() }

// LocalAddr returns a *net.UDPAddr.
func (c *RCPConn) LocalAddr() net.Addr { return c.inner().LocalAddr() }

// RemoteAddr returns a *net.UDPAddr.
func (c *RCPConn) RemoteAddr() net.Addr { return c.inner().RemoteAddr() }

// SetDeadline sets the read and the write deadline, as a Conn's.
func (c *RCPConn) SetDeadline(t time.Time) error { return c.inner().SetDeadline(t) }

// SetReadDeadline has Read give up at t; the zero time means never.
func (c *RCPConn) SetReadDeadline(t time.Time) error { return c.inner().SetReadDeadline(t) }

// SetWriteDeadline has Write give up at t; the zero time means never.
func (c *RCPConn) SetWriteDeadline(t time.Time) error { return c.inner().SetWriteDeadline(t) }

// RCPInfo counts a connection's packets.
type RCPInfo struct {
	// Data, Acks and Ends were sent: DAT, ACK and FIN. Again of them were repeats.
	Data, Acks, Ends, Again uint64
	// Received packets were accepted.
	Received uint64
	// RTT is the smoothed round-trip time; 0: not measured yet.
	RTT time.Duration
}

// Info returns the connection's counts, also when it is over.
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

// RCPListener takes connections of RCP at one UDP port. It implements net.Listener.
type RCPListener struct{ listener *node.RCPListener }

var _ net.Listener = (*RCPListener)(nil)

// Accept waits for the next connection.
func (l *RCPListener) Accept() (net.Conn, error) {
	c, err := l.AcceptRCP()
	if err != nil {
		return nil, err // not an *RCPConn that is nil
	}
	return c, nil
}

// AcceptRCP is Accept with the connection in its own type.
func (l *RCPListener) AcceptRCP() (*RCPConn, error) {
	c, err := l.inner().AcceptRCP()
	if err != nil {
		return nil, err
	}
	return &RCPConn{c}, nil
}

// Close stops listening. Connections that nobody has accepted are forgotten; the port is
// free when the last of the others has ended.
func (l *RCPListener) Close() error { return l.inner().Close() }

// Addr returns a *net.UDPAddr.
func (l *RCPListener) Addr() net.Addr { return l.inner().Addr() }

// SetDeadline has Accept give up at t; the zero time means never.
func (l *RCPListener) SetDeadline(t time.Time) error { return l.inner().SetDeadline(t) }
