package services

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// smallPorts are the ports of the small services.
var smallPorts = map[control.SmallService]uint16{
	control.ServiceEcho: 7, control.ServiceDiscard: 9, control.ServiceChargen: 19,
}

// answersAll lists ports whose servers answer every datagram. The small services do not answer
// datagrams from these ports, because two such servers would exchange datagrams for ever.
var answersAll = map[uint16]bool{7: true, 13: true, 17: true, 19: true, 37: true}

const (
	smallChunk   = 16 << 10
	chargenLine  = 72  // RFC 864: a line has 72 of the 95 printing characters
	chargenBytes = 512 // RFC 864: maximum length of a datagram
)

// serveSmall opens a server of RFC 862, 863 or 864.
func (h *Host) serveSmall(_ context.Context, r control.ServeSmall) (control.Socket, error) {
	port, ok := smallPorts[r.Service]
	if !ok {
		return control.Socket{}, control.Misuse("service %q: must be echo, discard or chargen",
			r.Service)
	}
	if r.Port != 0 {
		port = r.Port
	}
	on := h.node.AllAddrs(port)
	l, err := h.node.TCP.Listen(on, 0)
	if err != nil {
		return control.Socket{}, fmt.Errorf("%s: port %d: %w", r.Service, port, control.Reason(err))
	}
	c, err := h.node.Packets.Listen(on)
	if err != nil {
		_ = l.Close() // the listener was not announced yet
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

// smallTCP serves one connection. Keepalive detects clients that are gone.
func smallTCP(service control.SmallService, conn net.Conn) {
	defer conn.Close()
	if s, ok := conn.(*served); ok {
		s.conn.Guard()
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
		_, _ = c.WriteToAddrPort(answer, from) // UDP may lose it anyway
	}
}

// chargen returns lines of RFC 864's pattern, starting with the given one.
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

// These are the defaults and limits of an echo client.
const (
	echoSize    = 64
	echoEvery   = time.Second
	echoTimeout = 2 * time.Second
	maxEcho     = 65507 // maximum payload of a datagram
	minEcho     = 4     // length of the sequence number, which identifies late answers
)

// echoClient sends messages and compares the answers.
type echoClient struct {
	control.Echo
	conn   net.Conn
	result control.EchoResult
	sum    time.Duration
	buf    []byte
}

func (h *Host) echo(ctx context.Context, r control.Echo) (control.EchoResult, error) {
	r.Port = cmp.Or(r.Port, smallPorts[control.ServiceEcho])
	r.Size = cmp.Or(r.Size, echoSize)
	r.Interval = cmp.Or(r.Interval, echoEvery)
	r.Timeout = cmp.Or(r.Timeout, echoTimeout)
	to := netip.AddrPortFrom(r.Addr, r.Port)
	switch {
	case r.Size < minEcho || r.Size > maxEcho:
		return control.EchoResult{}, control.Misuse("echo: size %d: must be %d to %d",
			r.Size, minEcho, maxEcho)
	case r.Count < 0 || r.Interval < 0 || r.Timeout < 0:
		return control.EchoResult{}, control.Misuse(
			"echo: count, interval and timeout must be 0 or more")
	}
	e := &echoClient{Echo: r, buf: make([]byte, maxEcho)}
	e.result.Peer, e.result.UDP = to, r.UDP
	var err error
	if r.UDP {
		e.conn, err = h.node.Packets.Dial(to)
	} else {
		e.conn, err = node.ConnectBy(ctx, h.node.TCP.Dial, r.Addr, r.Port)
	}
	if err != nil && !r.UDP {
		return e.result, fmt.Errorf("echo %w", err) // the error already contains the address
	}
	if err != nil {
		return e.result, fmt.Errorf("echo %v: %w", to, control.Reason(err))
	}
	defer e.conn.Close()
	defer context.AfterFunc(ctx, func() { _ = e.conn.SetDeadline(time.Unix(1, 0)) })()
	if err = e.run(ctx); err != nil && ctx.Err() == nil {
		return e.result, fmt.Errorf("echo %v: %w", to, control.Reason(err))
	}
	return e.result, nil
}

func (e *echoClient) run(ctx context.Context) error {
	next := time.NewTimer(0)
	defer next.Stop()
	for seq := 1; e.Count == 0 || seq <= e.Count; seq++ {
		select {
		case <-next.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		next.Reset(e.Interval)
		if err := e.one(ctx, seq); err != nil {
			return err
		}
	}
	return nil
}

// one sends a message and waits for its echo. A missing datagram is not an error.
func (e *echoClient) one(ctx context.Context, seq int) error {
	message := bytes.Repeat([]byte{byte('a' + seq%26)}, e.Size)
	binary.BigEndian.PutUint32(message, uint32(seq))
	sent := time.Now()
	err := e.conn.SetDeadline(sent.Add(e.Timeout))
	if ctx.Err() != nil {
		return context.Cause(ctx) // the deadline above may have replaced the one of ctx
	}
	if err == nil {
		_, err = e.conn.Write(message)
	}
	if err == nil {
		e.result.Sent++
	}
	var answer []byte
	if err == nil {
		answer, err = e.answer(seq)
	}
	reply := control.EchoReply{
		From: e.result.Peer, Seq: seq, Size: len(answer), RTT: time.Since(sent),
	}
	switch {
	case err == nil && bytes.Equal(answer, message):
		e.came(reply.RTT)
	case err == nil:
		e.result.Wrong++
		reply.Problem = "the answer differs from the message"
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case e.UDP && errors.Is(err, os.ErrDeadlineExceeded):
		reply.Problem, err = "no answer", nil
	case e.UDP && errors.Is(err, control.ErrRefused),
		e.UDP && errors.Is(err, control.ErrUnreachable):
		reply.Problem, err = control.Reason(err).Error(), nil
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("%w by the server", control.ErrClosed)
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("%w: no answer for %v", control.ErrTimeout, e.Timeout)
	}
	if err == nil && e.Each != nil {
		e.Each(reply)
	}
	return err
}

// answer reads the echo of a message. Over TCP it reads as many bytes as were sent; over UDP it
// skips late answers to earlier messages.
func (e *echoClient) answer(seq int) ([]byte, error) {
	if !e.UDP {
		k, err := io.ReadFull(e.conn, e.buf[:e.Size])
		return e.buf[:k], err
	}
	for {
		k, err := e.conn.Read(e.buf)
		late := k >= minEcho && int(binary.BigEndian.Uint32(e.buf)) < seq
		if err != nil || !late {
			return e.buf[:k], err
		}
	}
}

func (e *echoClient) came(rtt time.Duration) {
	r := &e.result
	r.Received++
	e.sum += rtt
	if r.Received == 1 || rtt < r.Min {
		r.Min = rtt
	}
	r.Max, r.Avg = max(r.Max, rtt), e.sum/time.Duration(r.Received)
}
