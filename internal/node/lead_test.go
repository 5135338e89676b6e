package node

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// echoing returns a connection whose peer echoes all data.
func echoing(tb testing.TB, from, to *Node, addr string) (ask func(), c *Conn) {
	tb.Helper()
	c, server := connect(tb, from, to, addr)
	go func() {
		_, _ = io.Copy(server, server)
		_ = server.Close()
	}()
	var b [64]byte
	return func() {
		_, err := c.Write(b[:])
		require.NoError(tb, err)
		_, err = io.ReadFull(c, b[:])
		require.NoError(tb, err)
	}, c
}

// A leading reader detects at once when its read must end, for any reason, even while it waits in
// place of the loop.
func TestLeadingReaderEndsItsReadAtOnce(t *testing.T) {
	for range 20 {
		a, b := twoNodes(t, Config{})
		ask, c := echoing(t, a, b, "10.0.0.2:7")
		read := func(end func()) error {
			ask()
			failure := make(chan error, 1)
			go func() {
				_, err := c.Read(make([]byte, 1))
				failure <- err
			}()
			end()
			select {
			case err := <-failure:
				return err
			case <-time.After(patience):
				return nil
			}
		}
		require.ErrorIs(t, read(func() {
			assert.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Microsecond)))
		}), os.ErrDeadlineExceeded)
		require.NoError(t, c.SetReadDeadline(time.Time{}))
		require.ErrorIs(t, read(func() {
			assert.NoError(t, c.SetReadDeadline(time.Unix(1, 0)))
		}), os.ErrDeadlineExceeded)
		require.NoError(t, c.SetReadDeadline(time.Time{}))
		require.ErrorIs(t, read(func() { assert.NoError(t, c.CloseRead()) }), io.EOF)

		ask, c = echoing(t, a, b, "10.0.0.2:8")
		require.ErrorIs(t, read(func() { assert.NoError(t, c.Close()) }), net.ErrClosed)
		ask, c = echoing(t, a, b, "10.0.0.2:9")
		require.ErrorIs(t, read(func() { assert.NoError(t, a.Close()) }), net.ErrClosed)
		require.NoError(t, b.Close())
	}
}

// A request and its reply allocate no memory at either end.
func TestRequestAndReplyAllocateNothing(t *testing.T) {
	a, b := twoNodes(t, Config{})
	ask, _ := echoing(t, a, b, "10.0.0.2:7")
	for range 100 {
		ask()
	}
	assert.Zero(t, testing.AllocsPerRun(1000, ask))
}
