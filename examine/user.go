package examine

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// user is a stack of ours with a user who carries out commands. It is the subject of the profile
// self, and the examiner's end of a file transfer. Its owner advances the time.
type user struct {
	stack   *stack.Stack
	batch   *buffer.Batch
	room    []int
	links   int
	conn    *tcp.Conn // the last connection
	pending []byte    // data that waits for room in the send buffer
	leaving bool      // close the sending side after pending
	whole   bool      // read everything, and close after the peer has closed
	reading int       // bytes that the read command still has to read
	shown   bytes.Buffer
	file    []byte
	done    bool // the file is complete
	out     []Arrival
}

func newUser(now clock.Time, cfg stack.Config) (*user, error) {
	s, err := stack.New(now, cfg)
	if err != nil {
		return nil, err
	}
	return &user{
		stack: s, batch: buffer.NewBatch(), room: make([]int, len(cfg.Interfaces)),
		links: len(cfg.Interfaces),
	}, nil
}

// input passes a packet to the stack.
func (u *user) input(now clock.Time, link int, packet []byte) {
	u.stack.Input(now, link, false, [][]byte{packet})
	u.settle(now)
}

// advance does everything that is due.
func (u *user) advance(now clock.Time) {
	u.stack.Advance(now)
	u.settle(now)
}

// settle lets the user act and collects packets until no more are sent.
func (u *user) settle(now clock.Time) {
	for again := true; again; {
		u.drain(now)
		again = u.events(now)
	}
}

func (u *user) drain(now clock.Time) {
	for more := true; more; {
		for i := range u.room {
			u.room[i] = 1 << 10
		}
		more = u.stack.Output(now, u.room, u.batch)
		trains := u.batch.Trains()
		for i := range trains {
			for j := range trains[i].Count {
				data := slices.Concat(trains[i].Packet(j)...)
				u.out = append(u.out, Arrival{At: now, Link: trains[i].Iface, Data: data})
			}
		}
		u.batch.Reset()
	}
}

// events handles new events of the stack, and reports whether there were any.
func (u *user) events(now clock.Time) bool {
	some := false
	for _, e := range u.stack.Events() {
		if t := e.Test; t != nil {
			fmt.Fprintf(&u.shown, "Received test packet: Src: %s, Dst: %s, TTL: %d, Data: %s\n",
				t.Src, t.Dst, t.TTL, t.Data)
		}
	}
	for {
		c, l, _, ok := u.stack.TCP().NextEvent()
		if !ok {
			break
		}
		some = true
		if l != nil {
			for a, ok := l.Accept(); ok; a, ok = l.Accept() {
				u.conn = a
			}
		} else if c != u.conn {
			continue
		}
		u.work(now)
	}
	return some
}

// work moves data between the user and the connection.
func (u *user) work(now clock.Time) {
	c := u.conn
	if c == nil {
		return
	}
	if n, err := c.Send(now, u.pending); err == nil {
		u.pending = u.pending[n:]
	}
	if len(u.pending) == 0 && u.leaving && established(c) {
		u.leaving = false
		_ = c.CloseWrite(now) // may be closed already
	}
	if u.reading > 0 {
		p := make([]byte, u.reading)
		if n := c.Rx().Read(p); n > 0 {
			c.Consumed(now)
			u.reading = 0
			fmt.Fprintf(&u.shown, "Read %d bytes: %s\n", n, p[:n])
		}
	}
	if !u.whole {
		return
	}
	p := make([]byte, c.Rx().Len())
	if n := c.Rx().Read(p); n > 0 {
		c.Consumed(now)
		u.file = append(u.file, p[:n]...)
	}
	if c.ReadDone() && c.Rx().Len() == 0 && !u.done {
		u.done = c.Err() == nil
		c.Close(now)
	}
}

// established reports whether the connection can send data.
func established(c *tcp.Conn) bool {
	return c.State() == tcp.StateEstablished || c.State() == tcp.StateCloseWait
}

// do carries out a command.
func (u *user) do(now clock.Time, c Command) error {
	err := u.order(now, c)
	u.work(now)
	u.settle(now)
	return err
}

func (u *user) order(now clock.Time, c Command) error {
	var err error
	switch c.Kind {
	case CommandListen, CommandReceiveFile:
		u.whole = c.Kind == CommandReceiveFile
		_, err = u.stack.ListenTCP(netip.AddrPortFrom(netip.IPv4Unspecified(), c.Port), 16)
	case CommandConnect, CommandSendFile:
		u.conn, err = u.stack.DialTCP(now, netip.AddrPort{}, netip.AddrPortFrom(c.Addr, c.Port))
		u.pending, u.leaving = slices.Clone(c.Data), c.Kind == CommandSendFile
	case CommandWrite:
		u.pending = append(u.pending, c.Data...)
	case CommandTest:
		_, err = u.stack.SendTest(now, c.Addr, 0, c.Data)
	case CommandUp, CommandDown:
		u.stack.SetUp(now, c.N, c.Kind == CommandUp)
	case CommandRead:
		u.reading = c.N
	case CommandShutdown, CommandClose:
		if u.conn == nil {
			return fmt.Errorf("there is no connection")
		}
		if c.Kind == CommandClose {
			u.conn.Close(now)
		} else {
			err = u.conn.CloseWrite(now)
		}
	}
	return err
}
