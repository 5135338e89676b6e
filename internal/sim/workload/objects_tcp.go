package workload

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// maxRead limits the bytes of a read of a client whose reads cost time.
const maxRead = 1024

// transfer has the state that all arms over TCP share.
type transfer struct {
	app     *ObjectsApp
	cfg     *ObjectsConfig
	servers []*sim.Conn // connections in the order in which they were accepted
	clients []*sim.Conn
	buf     []byte
}

// attachTCP makes the client connect and receive the objects as they arrive.
func attachTCP(
	a *ObjectsApp, client, server *sim.Host, at netip.AddrPort, cfg *ObjectsConfig,
) error {
	t := &transfer{app: a, cfg: cfg, buf: make([]byte, 1<<16)}
	a.counts = t.count
	backlog := 1
	if cfg.Arm == Parallel {
		backlog = len(a.items)
	}
	_, err := server.Listen(at.Port(), backlog, func(c *sim.Conn) sim.App {
		t.servers = append(t.servers, c)
		if cfg.Opened != nil {
			cfg.Opened(c)
		}
		return &serverConn{transfer: t, parts: cfg.Stream(a.items)}
	})
	if err != nil {
		return err
	}
	if cfg.Arm != Parallel {
		return t.dial(client, at, nil, order(cfg, a.items)...)
	}
	for _, i := range order(cfg, a.items) {
		request := binary.BigEndian.AppendUint16(nil, uint16(i))
		if err := t.dial(client, at, request, i); err != nil {
			return err
		}
	}
	return nil
}

func (t *transfer) dial(client *sim.Host, at netip.AddrPort, request []byte, objects ...int) error {
	c, err := client.Dial(at, t.clientConn(request, objects))
	if err == nil {
		t.clients = append(t.clients, c)
	}
	return err
}

func (t *transfer) count(r *ObjectsResult) {
	r.Sent, r.Data, r.Again, r.SentBytes, r.ClientSent = 0, 0, 0, 0, 0
	r.Timeouts, r.Recoveries = 0, 0
	for _, c := range t.servers {
		i := c.TCP().Info()
		r.Sent += i.SegsOut
		r.Data += i.DataSegsOut
		r.Again += i.TotalRetrans
		r.SentBytes += i.BytesSent
		r.Timeouts += i.TotalRTO
		r.Recoveries += i.FastRecoveries
	}
	for _, c := range t.clients {
		r.ClientSent += c.TCP().Info().SegsOut
	}
}

// serverConn is the server's end of a connection. It writes its parts, and closes the connection.
type serverConn struct {
	*transfer
	parts   [][]byte // data to write; nil: the client has not requested an object yet
	request []byte
	at      int // position in the first part
	closed  bool
}

func (o *serverConn) Turn(_ clock.Time, c *sim.Conn, e tcp.Event) {
	if e&tcp.Closed != 0 || o.closed {
		return
	}
	if o.parts == nil && !o.asked(c) {
		return
	}
	for len(o.parts) > 0 {
		n := c.Write(o.parts[0][o.at:])
		if o.at += n; o.at < len(o.parts[0]) {
			if n == 0 {
				return
			}
			continue
		}
		o.parts, o.at = o.parts[1:], 0
	}
	o.closed = true
	c.Close()
}

// asked reads the number of the object that the client requests. It returns false if the number has
// not arrived, or if there is no such object.
func (o *serverConn) asked(c *sim.Conn) bool {
	n := c.Read(o.buf[:RequestBytes-len(o.request)])
	o.request = append(o.request, o.buf[:n]...)
	if len(o.request) < RequestBytes {
		return false
	}
	i := int(binary.BigEndian.Uint16(o.request))
	if i >= len(o.app.items) {
		c.Abort()
		o.closed = true
		return false
	}
	o.parts = o.app.items[i].Stream()
	return true
}

// clientConn is the client's end of a connection.
type clientConn struct {
	*transfer
	*ObjectReader
	request []byte
	wrong   []bool     // marks objects with a wrong byte, by number
	now     clock.Time // time of the current turn
	idle    clock.Time // the client is busy until then
	closed  bool
}

func (t *transfer) clientConn(request []byte, objects []int) *clientConn {
	i := &clientConn{transfer: t, request: request, wrong: make([]bool, len(t.app.items))}
	i.ObjectReader = NewObjectReader(t.app.items, objects, t.cfg.Arm == Interleaved, i.got)
	return i
}

func (i *clientConn) got(id, at int, b []byte) bool {
	data := i.app.items[id].Data
	i.wrong[id] = i.wrong[id] || !bytes.Equal(b, data[at:at+len(b)])
	switch at + len(b) {
	case 0:
		i.app.begin(id, i.now)
	case len(data):
		i.app.complete(id, i.now, !i.wrong[id])
	}
	return true
}

func (i *clientConn) Turn(now clock.Time, c *sim.Conn, e tcp.Event) {
	if i.closed {
		return
	}
	if len(i.request) > 0 && c.TCP().State() == tcp.StateEstablished {
		i.request = i.request[c.Write(i.request):]
	}
	i.now = now
	bad := i.read(now, c)
	switch {
	case i.Left() == 0:
		i.closed = true
		c.Close()
	case bad:
		i.fail("received data is not an object of this experiment")
		c.Abort()
	case e&tcp.Closed != 0:
		i.fail(fmt.Sprint(c.TCP().Err()))
	case c.EOF():
		i.fail("the server closed the connection")
		c.Close()
	}
}

// read reads as much as the time permits. It reports whether the data is invalid.
func (i *clientConn) read(now clock.Time, c *sim.Conn) (bad bool) {
	most := len(i.buf)
	if i.cfg.ReadCost > 0 {
		most = maxRead
	}
	for i.idle <= now && !bad {
		n := c.Read(i.buf[:most])
		if n == 0 {
			return false
		}
		bad = !i.Take(i.buf[:n])
		if i.idle = now.Add(i.cfg.ReadCost); i.idle > now {
			c.Wake(i.idle)
		}
	}
	return bad
}

func (i *clientConn) fail(why string) {
	i.closed = true
	for range i.Left() {
		i.app.fail(why)
	}
}
