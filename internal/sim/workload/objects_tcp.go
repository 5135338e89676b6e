package workload

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// On a connection, each object follows its length, 16 characters in Python's format '{:16d}'. Where
// chunks are interleaved, each follows a frame: the object's number and the chunk's length, 2 bytes
// each. A client with a connection for each object requests it by its number, 2 bytes.
const (
	prefixBytes  = 16
	frameBytes   = 4
	requestBytes = 2
	maxChunk     = 1<<16 - 1
	mostRead     = 1024 // bytes, of a client whose reads cost time
)

func prefix(n int) []byte { return fmt.Appendf(nil, "%*d", prefixBytes, n) }

// transfer is what the arms over TCP have in common.
type transfer struct {
	app     *ObjectsApp
	cfg     *ObjectsConfig
	servers []*sim.Conn // as they were accepted
	clients []*sim.Conn
	buf     []byte
}

// attachTCP has the client connect, and take the objects as they come.
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
		return &outbox{transfer: t, parts: stream(cfg, a.items)}
	})
	if err != nil {
		return err
	}
	if cfg.Arm != Parallel {
		in := &inbox{transfer: t, objects: order(cfg, a.items), framed: cfg.Arm == Interleaved}
		return t.dial(client, at, in)
	}
	for _, i := range order(cfg, a.items) {
		request := binary.BigEndian.AppendUint16(nil, uint16(i))
		one := &inbox{transfer: t, objects: []int{i}, request: request}
		if err := t.dial(client, at, one); err != nil {
			return err
		}
	}
	return nil
}

// stream is what a connection carries; nil: the client has to say.
func stream(cfg *ObjectsConfig, items []item) [][]byte {
	switch cfg.Arm {
	case Sequential:
		return inOrder(cfg, items)
	case Interleaved:
		return inTurns(items, cfg.Chunk)
	default:
		return nil
	}
}

func (t *transfer) dial(client *sim.Host, at netip.AddrPort, in *inbox) error {
	in.arriving = make([]arriving, len(t.app.items))
	c, err := client.Dial(at, in)
	if err == nil {
		t.clients = append(t.clients, c)
	}
	return err
}

// count adds up what the connections count.
func (t *transfer) count(r *ObjectsResult) {
	r.Sent, r.Data, r.Again, r.SentBytes, r.ClientSent = 0, 0, 0, 0, 0
	r.Timeouts, r.Recoveries = 0, 0
	for _, c := range t.servers {
		i := c.TCP().Info()
		r.Sent += i.SegsOut
		r.Data += i.DataSegsOut
		r.Again += i.Retransmits
		r.SentBytes += i.BytesSent
		r.Timeouts += i.Timeouts
		r.Recoveries += i.FastRecoveries
	}
	for _, c := range t.clients {
		r.ClientSent += c.TCP().Info().SegsOut
	}
}

// inOrder is a stream of objects, one after the other.
func inOrder(cfg *ObjectsConfig, items []item) (parts [][]byte) {
	for _, i := range order(cfg, items) {
		parts = append(parts, prefix(len(items[i].data)), items[i].data)
	}
	return parts
}

// inTurns is a stream of objects that take turns, a chunk each. An object's length is in
// front of its first chunk.
func inTurns(items []item, chunk int) (parts [][]byte) {
	left := make([][]byte, len(items))
	for i := range items {
		left[i] = append(prefix(len(items[i].data)), items[i].data...)
	}
	for more := true; more; {
		more = false
		for i := range left {
			n := min(chunk, len(left[i]))
			if n == 0 {
				continue
			}
			frame := binary.BigEndian.AppendUint16(make([]byte, 0, frameBytes), uint16(i))
			frame = binary.BigEndian.AppendUint16(frame, uint16(n))
			parts = append(parts, frame, left[i][:n])
			left[i] = left[i][n:]
			more = true
		}
	}
	return parts
}

// outbox is the server's end of a connection: it writes its parts, and closes.
type outbox struct {
	*transfer
	parts   [][]byte // nil: the client has to ask
	request []byte
	at      int // in the first part
	closed  bool
}

// Turn implements sim.App.
func (o *outbox) Turn(_ clock.Time, c *sim.Conn, e tcp.Event) {
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

// asked reads the number of the object that the client wants; false: it is not there yet, or
// there is no such object.
func (o *outbox) asked(c *sim.Conn) bool {
	n := c.Read(o.buf[:requestBytes-len(o.request)])
	o.request = append(o.request, o.buf[:n]...)
	if len(o.request) < requestBytes {
		return false
	}
	i := int(binary.BigEndian.Uint16(o.request))
	if i >= len(o.app.items) {
		c.Abort()
		o.closed = true
		return false
	}
	data := o.app.items[i].data
	o.parts = [][]byte{prefix(len(data)), data}
	return true
}

// inbox is the client's end of a connection.
type inbox struct {
	*transfer
	objects  []int      // those to come, in their order; framed: in whatever order
	arriving []arriving // by their number
	request  []byte
	framed   bool
	frame    []byte     // the frame that is being read
	current  int        // the object whose chunk is being read, and
	chunk    int        // how much of that is left
	got      int        // objects complete
	idle     clock.Time // it is busy until then
	closed   bool
}

// arriving is an object that is on its way.
type arriving struct {
	prefix []byte
	sized  bool
	wrong  bool
	rest   []byte // what should be behind what has come
}

// Turn implements sim.App.
func (i *inbox) Turn(now clock.Time, c *sim.Conn, e tcp.Event) {
	if i.closed {
		return
	}
	if len(i.request) > 0 && c.TCP().State() == tcp.StateEstablished {
		i.request = i.request[c.Write(i.request):]
	}
	bad := i.read(now, c)
	switch {
	case i.got == len(i.objects):
		i.closed = true
		c.Close()
	case bad:
		i.fail("what comes is no object")
		c.Abort()
	case e&tcp.Closed != 0:
		i.fail(fmt.Sprint(c.TCP().Err()))
	case c.EOF():
		i.fail("the server has closed")
		c.Close()
	}
}

// read reads what there is time for, and reports whether it is no object.
func (i *inbox) read(now clock.Time, c *sim.Conn) (bad bool) {
	most := len(i.buf)
	if i.cfg.ReadCost > 0 {
		most = mostRead
	}
	for i.idle <= now && !bad {
		n := c.Read(i.buf[:most])
		if n == 0 {
			return false
		}
		bad = !i.take(now, i.buf[:n])
		if i.idle = now.Add(i.cfg.ReadCost); i.idle > now {
			c.Wake(i.idle)
		}
	}
	return bad
}

// fail gives up what has not arrived.
func (i *inbox) fail(why string) {
	i.closed = true
	for range len(i.objects) - i.got {
		i.app.fail(why)
	}
}

// take takes bytes of the stream, and reports whether they make sense.
func (i *inbox) take(now clock.Time, b []byte) bool {
	for len(b) > 0 {
		if !i.framed {
			if i.got == len(i.objects) {
				return false
			}
			n, ok := i.put(now, i.objects[i.got], b)
			if !ok {
				return false
			}
			b = b[n:]
			continue
		}
		if i.chunk == 0 {
			n := min(frameBytes-len(i.frame), len(b))
			i.frame = append(i.frame, b[:n]...)
			b = b[n:]
			if len(i.frame) < frameBytes {
				return true
			}
			i.current = int(binary.BigEndian.Uint16(i.frame))
			i.chunk = int(binary.BigEndian.Uint16(i.frame[2:]))
			i.frame = i.frame[:0]
			if i.current >= len(i.arriving) || i.chunk == 0 {
				return false
			}
			continue
		}
		n, ok := i.put(now, i.current, b[:min(i.chunk, len(b))])
		if !ok {
			return false
		}
		i.chunk -= n
		b = b[n:]
	}
	return true
}

// put gives bytes to an object, and returns how many of them were its.
func (i *inbox) put(now clock.Time, id int, b []byte) (n int, ok bool) {
	o := &i.arriving[id]
	if !o.sized {
		if len(o.prefix) == 0 {
			i.app.begin(id, now)
		}
		n = min(prefixBytes-len(o.prefix), len(b))
		if o.prefix = append(o.prefix, b[:n]...); len(o.prefix) < prefixBytes {
			return n, true
		}
		o.rest, o.sized = i.app.items[id].data, true
		size, err := strconv.ParseUint(string(bytes.TrimLeft(o.prefix, " ")), 10, 32)
		return n, err == nil && int(size) == len(o.rest)
	}
	n = min(len(o.rest), len(b))
	if n == 0 {
		return 0, false // more of it than there is
	}
	o.wrong = o.wrong || !bytes.Equal(b[:n], o.rest[:n])
	if o.rest = o.rest[n:]; len(o.rest) == 0 {
		i.got++
		i.app.complete(id, now, !o.wrong)
	}
	return n, true
}
