//go:build linux

package interop_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/node"
)

// mustPair is like pair, for tests that need an established connection.
func (b *bed) mustPair(port int, weCall bool) (*node.Conn, *net.TCPConn) {
	b.t.Helper()
	ours, kernels, err := b.pair(port, weCall)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = ours.Close(); _ = kernels.Close() }) // the test may have closed them
	end := time.Now().Add(patience)
	require.NoError(b.t, ours.SetDeadline(end))
	require.NoError(b.t, kernels.SetDeadline(end))
	return ours.(*node.Conn), kernels.(*net.TCPConn)
}

func noise(n int) []byte {
	p := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(p) // never fails
	return p
}

func TestConnectionRefused(t *testing.T) { both(t, testConnectionRefused) }

func testConnectionRefused(t *testing.T, f family) {
	f.report(t, &row{peer: "Linux", scenario: "connection refused, both ways"})
	b := newBed(t, f, 0, nil)
	_, err := b.c.Node.TCP.Dial(t.Context(), f.at(kernelIP, 9))
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = b.kernelDial(9)
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestResets(t *testing.T) { both(t, testResets) }

func testResets(t *testing.T, f family) {
	f.report(t, &row{peer: "Linux", scenario: "reset, both ways"})
	b := newBed(t, f, 0, nil)
	ours, kernels := b.mustPair(9000, true)
	require.NoError(t, kernels.SetLinger(0))
	require.NoError(t, kernels.Close())
	_, err := ours.Read(make([]byte, 1))
	assert.ErrorIs(t, err, syscall.ECONNRESET)

	ours, kernels = b.mustPair(9001, false)
	ours.Abort()
	_, err = kernels.Read(make([]byte, 1))
	assert.ErrorIs(t, err, syscall.ECONNRESET)
}

// Either end half-closes first, and the data of the other end still arrives.
func TestHalfClose(t *testing.T) { both(t, testHalfClose) }

func testHalfClose(t *testing.T, f family) {
	f.report(t, &row{peer: "Linux", scenario: "half-close, both ways"})
	b := newBed(t, f, 0, nil)
	for i, weCloseFirst := range []bool{true, false} {
		ours, kernels := b.mustPair(9000+i, true)
		type halfCloser interface {
			net.Conn
			CloseWrite() error
		}
		var first, second halfCloser = ours, kernels
		if !weCloseFirst {
			first, second = kernels, ours
		}
		text := noise(1_000_000)
		_, err := first.Write([]byte("the end"))
		require.NoError(t, err)
		require.NoError(t, first.CloseWrite())
		got, err := io.ReadAll(second)
		require.NoError(t, err)
		assert.Equal(t, "the end", string(got))
		wrote := make(chan error, 1)
		go func() {
			_, err := second.Write(text)
			if err == nil {
				err = second.CloseWrite()
			}
			wrote <- err
		}()
		got, err = io.ReadAll(first)
		require.NoError(t, err)
		require.NoError(t, <-wrote)
		assert.Equal(t, sha256.Sum256(text), sha256.Sum256(got))
	}
	b.awaitNoConns()
}

// RFC 9293 §3.8.5: urgent data is delivered in line.
func TestUrgentDataFromKernel(t *testing.T) { both(t, testUrgentDataFromKernel) }

func testUrgentDataFromKernel(t *testing.T, f family) {
	f.report(t, &row{peer: "Linux", scenario: "urgent data in line"})
	b := newBed(t, f, 0, nil)
	ours, kernels := b.mustPair(9000, true)
	raw, err := kernels.SyscallConn()
	require.NoError(t, err)
	for i, text := range []string{"one", "t!", "three"} {
		flags := 0
		if i == 1 {
			flags = syscall.MSG_OOB
		}
		var failed error
		require.NoError(t, raw.Write(func(fd uintptr) bool {
			failed = syscall.Sendto(int(fd), []byte(text), flags, nil)
			return failed != syscall.EAGAIN
		}))
		require.NoError(t, failed)
	}
	require.NoError(t, kernels.CloseWrite())
	got, err := io.ReadAll(ours)
	require.NoError(t, err)
	assert.Equal(t, "onet!three", string(got))
}

// There are many connections at the same time, half of them opened by us and half by the kernel.
// Each echoes a different amount of data.
func TestManyConnections(t *testing.T) { both(t, testManyConnections) }

func testManyConnections(t *testing.T, f family) {
	const each = 100
	for _, loss := range []float64{0, 1} {
		t.Run(fmt.Sprintf("%g%%", loss), func(t *testing.T) {
			f.report(t, &row{
				peer: "Linux", loss: loss,
				scenario: fmt.Sprintf("%d connections at a time, half of them ours", 2*each),
			})
			b := newBed(t, f, loss, nil)
			serve := func(l net.Listener) {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer c.Close()
						_, _ = io.Copy(c, c) // the dialing end reports errors
					}()
				}
			}
			ours := b.listen(7)
			var kernels net.Listener
			require.NoError(t, b.inside(func() (err error) {
				kernels, err = net.Listen("tcp"+f.digit(), f.colon(kernelIP, 7))
				return err
			}))
			var servers, callers sync.WaitGroup
			servers.Go(func() { serve(ours) })
			servers.Go(func() { serve(kernels) })
			for i := range 2 * each {
				callers.Go(func() { assert.NoError(t, b.echoOnce(i%2 == 0, 1+i*500), "caller %d", i) })
			}
			callers.Wait()
			require.NoError(t, ours.Close())
			require.NoError(t, kernels.Close())
			servers.Wait()
			b.awaitNoConns()
		})
	}
}

// echoOnce connects one end to the other's echo server and sends n bytes.
func (b *bed) echoOnce(weCall bool, n int) error {
	var c net.Conn
	var err error
	if weCall {
		c, err = b.c.Node.TCP.Dial(b.t.Context(), b.at(kernelIP, 7))
	} else {
		c, err = b.kernelDial(7)
	}
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * patience)); err != nil {
		return err
	}
	text := noise(n)
	wrote := make(chan error, 1)
	go func() {
		_, err := c.Write(text)
		if h, ok := c.(interface{ CloseWrite() error }); ok && err == nil {
			err = h.CloseWrite()
		}
		wrote <- err
	}()
	got, err := io.ReadAll(c)
	if err != nil {
		return err
	}
	if err := <-wrote; err != nil {
		return err
	}
	if sha256.Sum256(got) != sha256.Sum256(text) {
		return fmt.Errorf("%d of %d bytes came back, or they differ", len(got), n)
	}
	return nil
}
