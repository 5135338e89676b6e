package tidepool_test

import (
	"encoding/binary"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

// wiretap carries packets by hand between two nodes on one Clock and records them. It needs a
// synctest bubble, in which it can wait for Dial's goroutine.
type wiretap struct {
	clock          tidepool.Clock
	left, right    *tidepool.PipeEnd
	client, server *tidepool.Conn
	seen           []segment
}

// segment holds the fields of a packet that the tests check.
type segment struct {
	fromServer bool
	tos, flags byte
	text       int
}

const (
	fin, syn, rst, ack = 1, 2, 4, 16
)

// tapped returns two nodes connected through a wiretap.
func tapped(t *testing.T, tcp tidepool.TCP) *wiretap {
	t.Helper()
	w := &wiretap{}
	x, left := tidepool.Pipe(0)
	y, right := tidepool.Pipe(0)
	w.left, w.right = left, right
	cfg := tidepool.Config{TCP: tcp, Clock: &w.clock}
	a := open(t, host(cfg, "10.0.0.1/24", "", x))
	b := open(t, host(cfg, "10.0.0.2/24", "", y))
	l, err := a.Listen("tcp", ":80")
	require.NoError(t, err)
	dialed := make(chan net.Conn, 1)
	go func() {
		c, err := b.Dial("tcp", "10.0.0.1:80")
		assert.NoError(t, err)
		dialed <- c
	}()
	synctest.Wait()
	w.carry()
	w.client = (<-dialed).(*tidepool.Conn)
	accepted, err := l.Accept()
	require.NoError(t, err)
	w.server = accepted.(*tidepool.Conn)
	w.seen = nil
	return w
}

// carry delivers packets until none are left. It returns the packets since the last call that have
// data or RST.
func (w *wiretap) carry() []segment {
	p := make([]byte, 2000)
	for {
		from, to, n, ok := w.left, w.right, 0, false
		if n, ok = from.TryRead(p); !ok {
			from, to = to, from
			if n, ok = from.TryRead(p); !ok {
				break
			}
		}
		header := 20 + int(p[32]>>4)*4
		s := segment{
			fromServer: from == w.left, tos: p[1], flags: p[33],
			text: int(binary.BigEndian.Uint16(p[2:])) - header,
		}
		if s.text > 0 || s.flags&rst != 0 {
			w.seen = append(w.seen, s)
		}
		_, _ = to.Write(p[:n])
	}
	seen := w.seen
	w.seen = nil
	return seen
}

func (w *wiretap) write(t *testing.T, bytes ...int) {
	t.Helper()
	for _, n := range bytes {
		_, err := w.client.Write(make([]byte, n))
		require.NoError(t, err)
	}
}

func texts(list []segment) []int {
	var n []int
	for _, s := range list {
		n = append(n, s.text)
	}
	return n
}

// RFC 9293 §3.7.4: Nagle's algorithm is off by default, as in net.
func TestNoDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := tapped(t, tidepool.TCP{})
		w.write(t, 1, 2, 3)
		assert.Equal(t, []int{1, 2, 3}, texts(w.carry()))
		require.NoError(t, w.client.SetNoDelay(false))
		w.write(t, 1, 2, 3)
		assert.Equal(t, []int{1, 5}, texts(w.carry()))
		require.NoError(t, w.client.SetNoDelay(true))
		w.write(t, 1, 2)
		assert.Equal(t, []int{1, 2}, texts(w.carry()))
	})
	synctest.Test(t, func(t *testing.T) {
		w := tapped(t, tidepool.TCP{Nagle: true})
		w.write(t, 1, 2, 3)
		assert.Equal(t, []int{1, 5}, texts(w.carry()))
	})
}

func TestCork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := tapped(t, tidepool.TCP{})
		require.NoError(t, w.client.SetCork(true))
		w.write(t, 1, 2)
		assert.Empty(t, w.carry())
		require.NoError(t, w.client.SetCork(false))
		assert.Equal(t, []int{3}, texts(w.carry()))
		require.NoError(t, w.client.SetCork(true))
		w.write(t, 4)
		w.clock.Advance(199 * time.Millisecond)
		assert.Empty(t, w.carry())
		w.clock.Advance(time.Millisecond)
		assert.Equal(t, []int{4}, texts(w.carry()))
	})
}

// RFC 2474 §3 and RFC 3168 §5: the program sets six bits of the TOS, ECN the other two.
func TestMaxSegAndTOS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := tapped(t, tidepool.TCP{NoTimestamps: true})
		require.NoError(t, w.client.SetMaxSeg(200))
		require.NoError(t, w.client.SetTOS(0xb9))
		w.write(t, 500)
		sent := w.carry()
		assert.Equal(t, []int{200, 200, 100}, texts(sent))
		assert.EqualValues(t, 0xb8, sent[0].tos)
		require.ErrorIs(t, w.client.SetMaxSeg(1), syscall.EINVAL)
		require.ErrorIs(t, w.client.SetCongestionControl("vegas"), syscall.EINVAL)
	})
}

func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := tapped(t, tidepool.TCP{})
		require.NoError(t, w.client.SetLinger(0))
		w.write(t, 10)
		require.NoError(t, w.client.Close())
		sent := w.carry()
		require.NotEmpty(t, sent)
		assert.NotZero(t, sent[len(sent)-1].flags&rst, "RFC 9293 §3.10.5")
		_, err := io.Copy(io.Discard, w.server)
		require.ErrorIs(t, err, syscall.ECONNRESET)
	})
	synctest.Test(t, func(t *testing.T) {
		w := tapped(t, tidepool.TCP{})
		require.NoError(t, w.client.SetLinger(3))
		w.write(t, 10)
		closed := make(chan error, 1)
		go func() { closed <- w.client.Close() }()
		synctest.Wait()
		w.clock.Advance(3*time.Second - 1)
		synctest.Wait()
		assert.Empty(t, closed)
		w.clock.Advance(1)
		require.Error(t, <-closed, "the data was not acknowledged")
	})
	synctest.Test(t, func(t *testing.T) {
		w := tapped(t, tidepool.TCP{})
		require.NoError(t, w.client.SetLinger(3))
		w.write(t, 10)
		closed := make(chan error, 1)
		go func() { closed <- w.client.Close() }()
		synctest.Wait()
		assert.Equal(t, []int{10}, texts(w.carry()))
		w.clock.Advance(time.Second) // for a delayed acknowledgment
		w.carry()
		require.NoError(t, <-closed)
		got, err := io.ReadAll(w.server)
		require.NoError(t, err)
		assert.Len(t, got, 10)
	})
}

// RFC 9293 §3.8.3 and §3.8.4: the user timeout and keep-alives.
func TestUserTimeoutAndKeepAlive(t *testing.T) {
	for name, set := range map[string]func(c *tidepool.Conn) error{
		"user timeout": func(c *tidepool.Conn) error {
			if err := c.SetUserTimeout(13 * time.Second); err != nil {
				return err
			}
			_, err := c.Write([]byte("lost on a dead link"))
			return err
		},
		"keepalive": func(c *tidepool.Conn) error {
			return c.SetKeepAliveConfig(net.KeepAliveConfig{
				Enable: true, Idle: 10 * time.Second, Interval: time.Second, Count: 3,
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := tapped(t, tidepool.TCP{})
				require.NoError(t, set(w.client))
				failed := make(chan error, 1)
				go func() {
					_, err := w.client.Read(make([]byte, 1))
					failed <- err
				}()
				synctest.Wait()
				w.clock.Advance(13*time.Second - 1)
				synctest.Wait()
				assert.Empty(t, failed)
				w.clock.Advance(1)
				err := <-failed
				require.ErrorIs(t, err, syscall.ETIMEDOUT)
				var timeout net.Error
				require.ErrorAs(t, err, &timeout)
				assert.True(t, timeout.Timeout())
			})
		})
	}
}

func TestKeepAliveIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := tapped(t, tidepool.TCP{})
		require.NoError(t, w.client.SetKeepAlivePeriod(time.Second))
		for range 60 {
			w.clock.Advance(time.Second)
			w.carry()
		}
		w.write(t, 1)
		w.carry()
		n, err := w.server.Read(make([]byte, 9))
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		require.NoError(t, w.client.SetKeepAlive(false))
	})
}

func TestCongestionControlAndInfo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := tapped(t, tidepool.TCP{
			CongestionControl: "tahoe", Recovery: "sack", NoTimestamps: true, ECN: "on",
			InitialWindow: 3,
		})
		info, err := w.client.Info()
		require.NoError(t, err)
		assert.Equal(t, "ESTABLISHED", info.State)
		assert.Equal(t, "tahoe", info.CongestionControl)
		assert.False(t, info.Timestamps)
		assert.True(t, info.SACK)
		assert.True(t, info.ECN)
		assert.Equal(t, 1360, info.SndMSS)
		assert.Equal(t, 3*1360, info.SndCwnd)
		require.NoError(t, w.client.SetCongestionControl("bbr"))
		w.write(t, 100)
		w.carry()
		info, err = w.client.Info()
		require.NoError(t, err)
		assert.Equal(t, "bbr", info.CongestionControl)
		assert.EqualValues(t, 100, info.BytesSent)
		require.ErrorContains(t, w.client.SetCongestionControl("vegas"), "vegas")
		require.NoError(t, w.client.SetReadBuffer(10_000))
		require.NoError(t, w.client.SetWriteBuffer(1000))
		require.NoError(t, w.client.SetWriteDeadline(w.clock.Now()))
		n, err := w.client.Write(make([]byte, 3000))
		require.Error(t, err)
		assert.Zero(t, n)
		require.NoError(t, w.client.SetWriteDeadline(time.Time{}))
		require.NoError(t, w.client.Close())
		info, err = w.client.Info()
		require.NoError(t, err, "the last known state")
		assert.EqualValues(t, 100, info.BytesSent)
		require.ErrorIs(t, w.client.SetNoDelay(true), net.ErrClosed)
	})
}
