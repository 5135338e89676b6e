package workload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// mirror echoes data. It has room for a limited number of bytes at a time.
type mirror struct {
	b       []byte
	room    int
	corrupt func(b []byte) []byte
}

func (m *mirror) Write(p []byte) int {
	n := min(len(p), m.room)
	m.b = append(m.b, p[:n]...)
	m.room -= n
	return n
}

func (m *mirror) Read(p []byte) int {
	if m.corrupt != nil {
		m.b = m.corrupt(m.b)
	}
	n := copy(p, m.b)
	m.b = m.b[n:]
	return n
}

func newClient(t *testing.T, cfg EchoConfig) *echoClient {
	t.Helper()
	l, err := EchoNetwork{}.Build(1)
	require.NoError(t, err)
	return newEchoClient(l.Left, cfg.WithDefaults())
}

// A stream without room blocks the client. The client pauses only after a whole piece.
func TestClientWaitsForRoom(t *testing.T) {
	c := newClient(t, EchoConfig{Writes: 2, MinBytes: 100, MaxBytes: 100})
	m := &mirror{room: 60}
	c.turn(c.now, m)
	assert.Equal(t, uint64(60), c.written)
	assert.Equal(t, uint64(60), c.echoed)
	assert.Equal(t, clock.Never, c.due())
	m.room = 60
	c.turn(c.now.Add(time.Second), m)
	assert.Equal(t, uint64(100), c.written)
	assert.Equal(t, 1, c.writes)
	require.Greater(t, c.due(), c.now)
	m.room = 100
	c.turn(c.due(), m)
	assert.Equal(t, uint64(200), c.echoed)
	assert.False(t, c.done(), "in the last pause")
	c.turn(c.due(), m)
	assert.True(t, c.done())
	assert.False(t, c.wrong)
}

// The client detects a byte that differs from the written one, and an extra byte.
func TestClientChecksEveryByte(t *testing.T) {
	for _, corrupt := range []func(b []byte) []byte{
		func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		func(b []byte) []byte {
			more := make([]byte, len(b)+1)
			sim.Fill(more, 0)
			return more
		},
	} {
		c := newClient(t, EchoConfig{})
		c.turn(c.now, &mirror{room: 1 << 20, corrupt: corrupt})
		assert.True(t, c.wrong)
		assert.False(t, c.done())
	}
}
