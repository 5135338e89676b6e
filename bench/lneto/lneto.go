// Package lneto makes lneto, a TCP/IP stack for microcontrollers, a subject of the examiner.
package lneto

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/soypat/lneto"
	"github.com/soypat/lneto/x/xnet"

	"github.com/tidepool-net/tidepool/examine"
)

// Subject returns lneto with buffers of 16 KiB for each of 128 connections.
func Subject() examine.Subject { return &examine.Pipe{Title: "lneto", Open: open} }

const (
	mtu    = 1500
	buffer = 16 << 10
	// poll is the interval at which the host asks the stack for packets, because the stack has no
	// timers.
	poll = time.Millisecond
)

// host runs a stack, and asks it for the packets to send.
type host struct {
	stack   xnet.StackAsync
	sockets xnet.StackGo
	input   chan struct{}
	output  func(packet []byte)
	done    chan struct{}
	stopped sync.WaitGroup
}

func pause(uint) time.Duration { return poll }

var seed atomic.Int64

func open(l *examine.Link, output func(packet []byte)) (examine.PacketStack, error) {
	h := &host{input: make(chan struct{}, 1), output: output, done: make(chan struct{})}
	const connections = 128
	err := h.stack.Reset(xnet.StackConfig{
		StaticAddress4: l.Addr.Addr().As4(), MTU: mtu, Hostname: "lneto0",
		RandSeed: time.Now().UnixNano() + seed.Add(1), MaxActiveTCPPorts: connections,
	})
	if err != nil {
		return nil, fmt.Errorf("lneto: %w", err)
	}
	h.stack.SetGatewayHardwareAddr([6]byte{2})
	h.sockets = h.stack.StackGo(pause, xnet.StackGoConfig{
		TCPDialTimeout: time.Minute,
		ListenerPoolConfig: xnet.TCPPoolConfig{
			PoolSize: connections, QueueSize: 16, TxBufSize: buffer, RxBufSize: buffer,
			EstablishedTimeout: 10 * time.Second, ClosingTimeout: 10 * time.Second,
			NewBackoff: func() lneto.BackoffStrategy { return pause },
		},
	})
	h.stopped.Go(h.run)
	return h, nil
}

// run passes on the packets that the stack sends.
func (h *host) run() {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	b := make([]byte, mtu)
	for {
		for {
			n, err := h.stack.EgressIP(b)
			if n == 0 || err != nil {
				break
			}
			h.output(b[:n])
		}
		select {
		case <-h.done:
			return
		case <-h.input:
		case <-tick.C:
		}
	}
}

// Input implements examine.PacketStack. If the stack drops the packet, that is not an error.
func (h *host) Input(packet []byte) error {
	_ = h.stack.IngressIP(append([]byte(nil), packet...)) // the stack may change the packet
	select {
	case h.input <- struct{}{}:
	default:
	}
	return nil
}

// socket opens a socket of a type. For some failures, lneto returns the error as if it were a
// socket.
func socket[T any](ctx context.Context, h *host, from, to netip.AddrPort) (made T, err error) {
	s, err := h.sockets.SocketNetip(ctx, "tcp", syscall.AF_INET, syscall.SOCK_STREAM, from, to)
	if err != nil {
		return made, err
	}
	made, ok := s.(T)
	if !ok {
		return made, fmt.Errorf("lneto: %v", s)
	}
	return made, nil
}

// Listen implements examine.PacketStack.
func (h *host) Listen(port uint16) (net.Listener, error) {
	at := netip.AddrPortFrom(netip.AddrFrom4(h.stack.Addr4()), port)
	return socket[net.Listener](context.Background(), h, at, netip.AddrPort{})
}

// Dial implements examine.PacketStack.
func (h *host) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	at := netip.AddrPortFrom(netip.AddrFrom4(h.stack.Addr4()), 0)
	return socket[net.Conn](ctx, h, at, to)
}

// Close implements examine.PacketStack.
func (h *host) Close() {
	close(h.done)
	h.stopped.Wait()
}
