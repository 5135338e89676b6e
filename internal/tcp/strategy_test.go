package tcp

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func using(name string) Config { return Config{Knobs: Knobs{Recovery: Recovery{Strategy: name}}} }

func TestRecoveryIsChosen(t *testing.T) {
	assert.Equal(t, []string{"gbn", "newreno", "sack", "rack"}, Recoveries())
	_, err := NewHost(Config{
		Route: func(netip.Addr) Path { return Path{} }, Knobs: Knobs{Recovery: Recovery{Strategy: "hope"}},
	})
	require.ErrorContains(t, err, `unknown loss recovery "hope"`)
	s := opened(t, Config{})
	assert.Equal(t, "rack", s.c.Info().Strategy, "the default")
	for _, name := range Recoveries() {
		assert.Equal(t, name, opened(t, using(name)).c.Info().Strategy)
	}
	s = newScript(t, using("sack"))
	s.accept(Options{MSS: 1000})
	assert.Equal(t, "newreno", s.c.Info().Strategy, "the peer permits no SACK")
	k := s.h.Knobs()
	k.Recovery.Strategy = "gbn"
	require.NoError(t, s.h.SetKnobs(k))
	assert.Equal(t, "newreno", s.c.Info().Strategy, "for new connections only")
	k.Recovery.Strategy = "hope"
	require.Error(t, s.h.SetKnobs(k))
}

func TestReceiverSendsSACKWithAnyStrategy(t *testing.T) {
	s := opened(t, using("gbn"))
	s.send(ACK, 1001, 1, 1000)
	a := s.expect(ACK, 1, 1, 0)
	assert.Equal(t, uint8(1), a.options.SACKCount)
}

func TestGoBackN(t *testing.T) {
	t.Run("a timeout retransmits everything", func(t *testing.T) {
		cfg := using("gbn")
		cfg.Recovery.Congestion = "none"
		s := flight(t, 10, fullOptions, cfg)
		s.send(ACK, 1, 2001, 0)
		s.sack(2001, 3001, 10001) // ignored
		s.wait(s.c.snd.rec.At.RTO.Sub(s.now))
		s.collect()
		require.Len(t, s.out, 8)
		for i, g := range s.out {
			assert.Equal(t, uint32(2001+1000*i), g.seq)
		}
		s.out = nil
		s.send(ACK, 1, 10001, 0)
		assert.Equal(t, uint64(8), s.c.Info().TotalRetrans)
		assert.Zero(t, s.c.snd.rec.Pipe())
	})
	t.Run("the third duplicate retransmits everything", func(t *testing.T) {
		cfg := using("gbn")
		cfg.Recovery.Congestion = "none"
		s := flight(t, 5, fullOptions, cfg)
		s.sack(1, 1001, 2001)
		s.sack(1, 1001, 3001)
		s.quiet()
		s.sack(1, 1001, 4001)
		s.collect()
		assert.Len(t, s.out, 5)
		s.out = nil
		for range 10 {
			s.send(ACK, 1, 1, 0)
		}
		s.quiet() // duplicates caused by the retransmissions
		s.send(ACK, 1, 5001, 0)
		assert.Equal(t, "open", s.c.Info().CAState)
		assert.Zero(t, s.c.Info().TotalRTO)
	})
	t.Run("as fast as the window allows", func(t *testing.T) {
		s := flight(t, 8, fullOptions, using("gbn"))
		s.wait(s.c.snd.rec.At.RTO.Sub(s.now))
		s.expect(ACK, 1, 1, 1000)
		s.quiet()
		s.send(ACK, 1, 1001, 0)
		s.expect(ACK, 1001, 1, 1000)
		s.expect(ACK, 2001, 1, 1000)
		s.quiet()
	})
}

func TestNewRenoIgnoresSACK(t *testing.T) {
	s := flight(t, 10, fullOptions, using("newreno"))
	s.sack(1, 3001, 10001)
	s.sack(1, 3001, 10001)
	assert.Zero(t, s.c.Info().Sacked)
	s.sack(1, 3001, 10001)
	s.expect(ACK, 1, 1, 1000)
	s.quiet()
	s.send(ACK, 1, 1001, 0)
	s.expect(ACK, 1001, 1, 1000) // NewReno repairs one hole per round trip
}

func TestRFC6675(t *testing.T) {
	t.Run("§4 IsLost: three segments above", func(t *testing.T) {
		s := flight(t, 10, fullOptions, using("sack"))
		s.sack(1, 1001, 3001)
		s.quiet()
		s.wait(50 * time.Millisecond)
		s.quiet() // nothing waits for a timer
		s.sack(1, 1001, 4001)
		s.expect(ACK, 1, 1, 1000)
		assert.Equal(t, "recovery", s.c.Info().CAState)
		assert.Equal(t, 1, s.c.Info().Unacked-s.c.Info().Sacked-6)
	})
	t.Run("§4 IsLost: in any pieces", func(t *testing.T) {
		s := flight(t, 10, fullOptions, using("sack"))
		s.sack(1, 1001, 2001)
		s.sack(1, 3001, 4001, 1001, 2001)
		s.quiet()
		s.sack(1, 5001, 6001, 3001, 4001, 1001, 2001)
		assert.Equal(t, 1, s.c.Info().Lost, "only the first")
		s.sack(1, 8001, 10001, 5001, 6001, 3001, 4001, 1001, 2001)
		assert.Equal(t, 3, s.c.Info().Lost, "the segments with three above them")
	})
	t.Run("§5 step 3: limited transmit", func(t *testing.T) {
		s := flight(t, 10, fullOptions, using("sack"))
		s.write(5000)
		s.quiet()
		s.sack(1, 1001, 2001)
		s.expect(ACK, 10001, 1, 1000)
		s.sack(1, 1001, 3001)
		s.expect(ACK, 11001, 1, 1000)
		s.quiet()
	})
	t.Run("§4 NextSeg rules 1 and 2: lost data, then new data", func(t *testing.T) {
		s := flight(t, 10, fullOptions, using("sack"))
		s.write(10000)
		s.sack(1, 1001, 3001, 4001, 9001)
		s.collect()
		seqs := []uint32{}
		for i := range uint32(6) {
			s.sack(1, 10001+1000*i, 11001+1000*i, 1001, 3001, 4001, 9001)
			s.collect()
		}
		for _, g := range s.out {
			seqs = append(seqs, g.seq)
		}
		require.GreaterOrEqual(t, len(seqs), 3)
		assert.Equal(t, []uint32{1, 3001, 10001}, seqs[:3])
		assert.Contains(t, seqs[3:], uint32(9001), "lost once three are above it")
	})
	t.Run("§4 NextSeg rule 3: a possible hole, and rule 4: the rescue", func(t *testing.T) {
		s := flight(t, 10, fullOptions, using("sack"))
		s.sack(1, 1001, 7001, 8001, 9001)
		s.expect(ACK, 1, 1, 1000)
		assert.Zero(t, s.c.Info().Lost, "one segment above 7001 proves no loss")
		s.sack(1001, 1001, 7001, 8001, 9001)
		s.collect()
		s.send(ACK, 1, 7001, 0)
		s.collect()
		var seqs []uint32
		for _, g := range s.out {
			seqs = append(seqs, g.seq)
		}
		assert.Equal(t, []uint32{7001, 9001}, seqs)
		s.out = nil
		s.send(ACK, 1, 9001, 0)
		s.quiet() // the sender retransmits only once
		s.send(ACK, 1, 10001, 0)
		assert.Equal(t, "open", s.c.Info().CAState)
		assert.Zero(t, s.c.Info().TotalRTO)
	})
	t.Run("§5.1: a lost retransmission waits for the timeout, and sacked data is not retransmitted", func(t *testing.T) {
		s := flight(t, 10, fullOptions, using("sack"))
		s.sack(1, 1001, 10001)
		s.expect(ACK, 1, 1, 1000)
		s.wait(100 * time.Millisecond)
		s.quiet()
		s.wait(s.c.snd.rec.At.RTO.Sub(s.now))
		s.expect(ACK, 1, 1, 1000)
		s.quiet()
		assert.Equal(t, uint64(1), s.c.Info().LostRetransmits)
		s.send(ACK, 1, 10001, 0)
		assert.Zero(t, s.c.snd.rec.Pipe())
		assert.Equal(t, "open", s.c.Info().CAState)
	})
}

// TestEveryStrategyDelivers moves a stream over a lossy link with each strategy.
func TestEveryStrategyDelivers(t *testing.T) {
	for _, name := range Recoveries() {
		for _, cc := range []string{"reno", "none"} {
			for seed := range uint64(fewer(10)) {
				cfg := course()
				cfg.Recovery.Strategy, cfg.Recovery.Congestion = name, cc
				w := newWorld(t, seed, wire{
					delay: 200 * time.Microsecond, loss: 0.05, dup: 0.02, reorder: 0.05,
					merge: seed%2 == 0, bytesPerSec: 50e6,
				}, cfg)
				w.verify = true
				a, b := w.connect()
				s := newStream(a, b, shorter(1<<19))
				what := fmt.Sprintf("%s %s seed %d %+v", name, cc, seed, a.Info())
				require.True(t, w.transfer(10*time.Minute, s), what)
				assert.Equal(t, shorter(1<<19), s.read, what)
			}
		}
	}
}
