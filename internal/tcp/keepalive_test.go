package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRFC9293_3_8_4_KeepaliveOfALivingPeer(t *testing.T) {
	s := opened(t, Config{})
	s.set(func(o *Sockopts) { o.Keepalive = Keepalive{Idle: 10 * time.Second, Interval: time.Second, Count: 3} })
	for range 5 {
		s.wait(9 * time.Second)
		s.quiet()
		s.wait(time.Second)
		s.expect(ACK, 0, 1, 0)
		s.send(ACK, 1, 1, 0)
	}
	s.send(ACK, 1, 1, 10)
	s.expect(ACK, 1, 11, 0)
	s.wait(9 * time.Second)
	s.quiet()
	assert.Equal(t, StateEstablished, s.c.State())
}

func TestRFC9293_3_8_4_KeepaliveOfADeadPeer(t *testing.T) {
	s := opened(t, Config{})
	s.set(func(o *Sockopts) { o.Keepalive = Keepalive{Idle: 10 * time.Second, Interval: time.Second, Count: 3} })
	s.wait(10 * time.Second)
	for range 3 {
		s.expect(ACK, 0, 1, 0)
		assert.Equal(t, StateEstablished, s.c.State())
		s.wait(time.Second)
	}
	assert.Equal(t, StateClosed, s.c.State())
	require.ErrorIs(t, s.c.Err(), ErrTimeout)
}

func TestKeepaliveIsOffUnlessAskedFor(t *testing.T) {
	s := opened(t, Config{})
	s.wait(24 * time.Hour)
	s.quiet()
	s.set(func(o *Sockopts) { o.Keepalive = Keepalive{Idle: time.Second} })
	s.set(func(o *Sockopts) { o.Keepalive = Keepalive{} })
	s.wait(24 * time.Hour)
	s.quiet()
	assert.Zero(t, s.h.Deadline())
}
