package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestPeersWithoutOptionsAreRemembered checks that a peer that drops SYNs with options delays only
// the first connection by three timeouts.
func TestPeersWithoutOptionsAreRemembered(t *testing.T) {
	// plain connects and lets the peer answer only a SYN without options, with a SYN-ACK without
	// options. It returns how many SYNs with options came first.
	plain := func(s *script) (withOptions int) {
		s.connect()
		for s.expect(SYN, 0, 0, 0).options != (Options{}) {
			withOptions++
			s.wait(s.h.Deadline().Sub(s.now))
		}
		s.send(SYN|ACK, 0, 1, 0)
		s.expect(ACK, 1, 1, 0)
		assert.True(t, s.c.Info().Plain)
		s.send(RST|ACK, 1, 1, 0)
		assert.Equal(t, StateClosed, s.c.State())
		return withOptions
	}
	t.Run("for ten minutes", func(t *testing.T) {
		s := newScript(t, Config{})
		assert.Equal(t, plainSYN, plain(s))
		s.wait(plainAge / 2)
		assert.Zero(t, plain(s))
		s.wait(plainAge / 2)
		assert.Equal(t, plainSYN, plain(s), "a connection without options does not extend the ten minutes")
	})
	t.Run("until the peer sends an option", func(t *testing.T) {
		s := newScript(t, Config{})
		plain(s)
		s.accept(Options{MSS: 1000})
		s.send(RST|ACK, 1, 1, 0)
		assert.Equal(t, plainSYN, plain(s))
		assert.Zero(t, plain(s))
		s.connect()
		assert.Zero(t, s.expect(SYN, 0, 0, 0).options)
		s.send(SYN|ACK, 0, 1, 0, Options{MSS: 1000})
		s.expect(ACK, 1, 1, 0)
		assert.False(t, s.c.Info().Plain, "a plain peer's SYN-ACK may have an MSS option")
		s.send(RST|ACK, 1, 1, 0)
		assert.Equal(t, plainSYN, plain(s))
	})
	t.Run("the peer's own SYN does not count", func(t *testing.T) {
		s := newScript(t, Config{})
		s.accept(Options{}) // the SYNs with options may have been lost
		s.send(RST|ACK, 1, 1, 0)
		s.wait(time.Second)
		assert.Equal(t, plainSYN, plain(s))
	})
}

// TestResetsOff checks that a node that crashes at a reset never gets one.
func TestResetsOff(t *testing.T) {
	s := newScript(t, Config{Knobs: Knobs{NoResets: true}})
	s.send(SYN, 0, 0, 0)
	s.send(ACK, 1, 1, 0)
	s.quiet()
	assert.Zero(t, s.h.counters.Refused)
	s.accept(Options{})
	s.c.Abort(s.now)
	assert.Equal(t, StateClosed, s.c.State())
	s.send(ACK, 1, 1, 100)
	s.quiet()
}

// TestAcksToSmallSegments checks the acknowledgments of 1,024-byte segments. The course's nodes
// expect one for each segment. Every second segment gets one at once. The others get one unless the
// sender is faster than the timer of the delayed acknowledgment, which is 0.2 ms with the course's
// settings.
func TestAcksToSmallSegments(t *testing.T) {
	for gap, most := range map[time.Duration]int{
		5 * time.Microsecond: 510, 199 * time.Microsecond: 510, 250 * time.Microsecond: 1000,
	} {
		s := newScript(t, course())
		s.accept(Options{})
		acks := 0
		for n := range 1000 {
			s.send(ACK, uint32(1+n*1024), 1, 1024)
			s.wait(gap)
			s.collect()
			s.read(4096)
			acks += len(s.out)
			s.out = nil
		}
		assert.LessOrEqual(t, acks, most, "one segment every %v", gap)
		assert.GreaterOrEqual(t, acks, 500)
	}
}
