//go:build linux

package interop_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"golang.org/x/net/nettest"
)

// kernelDial connects the kernel to C.
func (b *bed) kernelDial(port int) (c net.Conn, err error) {
	err = b.inside(func() (err error) {
		c, err = net.DialTimeout("tcp"+b.digit(), b.colon(hostIP, port), patience)
		return err
	})
	return c, err
}

// pair connects C and the kernel; weCall says which one dials.
func (b *bed) pair(port int, weCall bool) (ours, kernels net.Conn, err error) {
	if !weCall {
		l, err := b.c.Node.TCP.Listen(b.at("0.0.0.0", port), 0)
		if err != nil {
			return nil, nil, err
		}
		defer l.Close()
		if kernels, err = b.kernelDial(port); err != nil {
			return nil, nil, err
		}
		ours, err = l.Accept()
		return ours, kernels, err
	}
	var l net.Listener
	if err := b.inside(func() (err error) {
		l, err = net.Listen("tcp"+b.digit(), b.colon(kernelIP, port))
		return err
	}); err != nil {
		return nil, nil, err
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if ours, err = b.c.Node.TCP.Dial(ctx, b.at(kernelIP, port)); err != nil {
		return nil, nil, err
	}
	kernels, err = l.Accept()
	return ours, kernels, err
}

// Connections between a node and the kernel pass nettest's checks of net.Conn.
func TestConnWithTheKernel(t *testing.T) { both(t, testConnWithTheKernel) }

func testConnWithTheKernel(t *testing.T, f family) {
	for name, weCall := range map[string]bool{"we call": true, "the kernel calls": false} {
		t.Run(name, func(t *testing.T) {
			f.report(t, &row{peer: "Linux", scenario: "nettest.TestConn, " + name})
			b := newBed(t, f, 0, nil)
			var port atomic.Int32
			port.Store(10_000)
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				c1, c2, err = b.pair(int(port.Add(1)), weCall)
				if err != nil {
					return nil, nil, nil, err
				}
				return c1, c2, func() { _ = c1.Close(); _ = c2.Close() }, nil
			})
		})
	}
}
