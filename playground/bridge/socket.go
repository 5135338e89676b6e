package bridge

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// Limits of a connection.
const (
	maxPacket = 65_535
	patience  = 10 * time.Second // how long a page may take to receive a message
	pingEvery = 10 * time.Second
	silence   = 30 * time.Second // how long a page may take to answer a ping; after that it is gone
	maxReason = 123              // in bytes (RFC 6455 §5.5)
)

// The opcodes of frames (RFC 6455 §5.2).
const (
	opMore   = 0
	opText   = 1
	opBinary = 2
	opClose  = 8
	opPing   = 9
	opPong   = 10
)

// socket is the server's end of a WebSocket. One goroutine reads, and several goroutines write.
type socket struct {
	conn    net.Conn
	in      *bufio.Reader
	message []byte // result of the last read

	mu    sync.Mutex // guards out and ended
	out   []byte
	ended bool // a close frame was written; no other frame may follow (RFC 6455 §5.5.1)
	once  sync.Once
}

func newSocket(conn net.Conn, in *bufio.Reader) *socket { return &socket{conn: conn, in: in} }

// protocolError is an error that the page made. The bridge closes the connection with this code
// (RFC 6455 §7.4.1).
type protocolError struct {
	code int
	text string
}

func (e *protocolError) Error() string { return e.text }

func wrong(text string) error { return &protocolError{1002, text} }

var (
	errLeft  = errors.New("the page was closed")
	errEnded = errors.New("the bridge has ended the connection")
	errLarge = &protocolError{1009, fmt.Sprintf("a packet may have %d bytes", maxPacket)}
)

// read returns the next message of the page. It is valid until the next call.
func (s *socket) read() ([]byte, error) {
	s.message = s.message[:0]
	for open := false; ; {
		if err := s.awaitPage(); err != nil {
			return nil, err
		}
		op, last, payload, err := s.frame()
		switch {
		case err != nil:
			return nil, err
		case op == opClose:
			return nil, errLeft
		case op == opPing:
			if err := s.write(opPong, payload); err != nil {
				return nil, err
			}
			continue
		case op == opPong:
			continue
		case open != (op == opMore) || op > opBinary:
			return nil, wrong("a frame is out of order")
		case op == opText:
			return nil, &protocolError{1003, "a message must be binary"}
		}
		if open = !last; last {
			return s.message, nil
		}
	}
}

// awaitPage limits how long the page may be silent, unless end has set an earlier deadline.
func (s *socket) awaitPage() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errEnded
	}
	return s.conn.SetReadDeadline(time.Now().Add(silence))
}

// frame reads a frame. It appends the payload of a data frame to s.message.
func (s *socket) frame() (op byte, last bool, payload []byte, err error) {
	var head [8]byte
	if _, err = io.ReadFull(s.in, head[:2]); err != nil {
		return 0, false, nil, err
	}
	op, last = head[0]&0x0f, head[0]&0x80 != 0
	size := uint64(head[1] & 0x7f)
	control := op >= opClose
	switch {
	case head[0]&0x70 != 0:
		return 0, false, nil, wrong("a frame has reserved bits set")
	case head[1]&0x80 == 0:
		return 0, false, nil, wrong("a frame is not masked")
	case control && (!last || size > 125 || op > opPong):
		return 0, false, nil, wrong("a control frame is malformed")
	case size == 126:
		_, err = io.ReadFull(s.in, head[:2])
		size = uint64(binary.BigEndian.Uint16(head[:]))
	case size == 127:
		_, err = io.ReadFull(s.in, head[:])
		size = binary.BigEndian.Uint64(head[:])
	}
	var mask [4]byte
	if err == nil {
		_, err = io.ReadFull(s.in, mask[:])
	}
	if err != nil {
		return 0, false, nil, err
	}
	begin := len(s.message)
	if size > uint64(1+maxPacket-begin) && !control {
		return 0, false, nil, errLarge
	}
	if control {
		payload = make([]byte, size)
	} else {
		s.message = append(s.message, make([]byte, size)...)
		payload = s.message[begin:]
	}
	_, err = io.ReadFull(s.in, payload)
	for i := range payload {
		payload[i] ^= mask[i&3]
	}
	return op, last, payload, err
}

// write sends a frame whose payload consists of these parts.
func (s *socket) write(op byte, parts ...[]byte) error {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errEnded
	}
	s.ended = op == opClose
	s.out = append(s.out[:0], 0x80|op)
	switch {
	case size <= 125:
		s.out = append(s.out, byte(size))
	case size <= 0xffff:
		s.out = binary.BigEndian.AppendUint16(append(s.out, 126), uint16(size))
	default:
		s.out = binary.BigEndian.AppendUint64(append(s.out, 127), uint64(size))
	}
	for _, p := range parts {
		s.out = append(s.out, p...)
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := s.conn.Write(s.out)
	return err
}

// hello tells the page which node it is.
func (s *socket) hello(node, network string) error {
	text, err := json.Marshal(map[string]string{"node": node, "network": network})
	if err != nil {
		return err
	}
	return s.write(opText, text)
}

// from carries the packets of a link to the page. It returns when the link or the page is closed.
func (s *socket) from(number int, l *net.UDPConn) {
	packet := make([]byte, maxPacket)
	for {
		n, err := l.Read(packet)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil || n == 0:
			continue // the neighbor is not running
		}
		err = s.write(opBinary, []byte{byte(number)}, packet[:n])
		if err != nil && !errors.Is(err, errEnded) {
			_ = s.conn.Close() // this also makes read return
		}
		if err != nil {
			return
		}
	}
}

// to carries the page's packets to the links until the page is gone.
func (s *socket) to(links []*net.UDPConn) error {
	for {
		m, err := s.read()
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			return fmt.Errorf("the page did not answer for %v", silence)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
			return errLeft
		}
		if err != nil {
			return err
		}
		if len(m) < 2 || int(m[0]) >= len(links) {
			return wrong("a message must be the number of an interface and a packet")
		}
		_, _ = links[m[0]].Write(m[1:]) // a link may lose packets
	}
}

// keep pings the page until the context ends.
func (s *socket) keep(ctx context.Context) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = s.write(opPing) // read reports a failure
		}
	}
}

// close sends the page the reason and closes its connection. Only the first call has an effect. It
// also reads what the page still sends: otherwise TCP would reset the connection, and the page
// might not get the reason.
func (s *socket) close(why error) { s.once.Do(func() { s.end(why) }) }

func (s *socket) end(why error) {
	code := 4000
	if p, ok := errors.AsType[*protocolError](why); ok {
		code = p.code
	}
	text := why.Error()
	text = strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
	_ = s.write(opClose, binary.BigEndian.AppendUint16(nil, uint16(code)), []byte(text))
	if half, ok := s.conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = s.conn.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = io.Copy(io.Discard, s.conn)
	}
	_ = s.conn.Close()
}
