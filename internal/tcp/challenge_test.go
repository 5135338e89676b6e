package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// RFC 5961 §3.2: only a reset at exactly RCV.NXT ends a connection.
func TestRFC5961_3_2_Reset(t *testing.T) {
	cases := []struct {
		name      string
		flags     Flags
		seq       uint32
		n         int
		challenge bool
		err       error
	}{
		{"exact", RST, 1, 0, false, ErrReset},
		{"exact, with an ACK of nothing we sent", RST | ACK, 1, 0, false, ErrReset},
		{"RFC 1122 §4.2.2.12: exact, with a reason as data", RST | ACK, 1, 20, false, ErrReset},
		{"one off", RST, 2, 0, true, nil},
		{"anywhere in the window", RST | ACK, 60000, 0, true, nil},
		{"the window's last number", RST, 65535, 0, true, nil},
		{"beyond the window", RST, 1 << 21, 0, false, nil},
		{"before the window", RST, ^uint32(70000), 0, false, nil},
		{"just before", RST, 0, 0, false, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := opened(t, Config{})
			s.send(c.flags, c.seq, 1, c.n)
			if c.challenge {
				s.expect(ACK, 1, 1, 0)
				assert.Equal(t, uint64(1), s.h.Drops()[DropReset])
			}
			s.quiet()
			assert.Equal(t, c.err, s.c.Err())
			assert.Equal(t, c.err != nil, s.c.State() == StateClosed)
			assert.Zero(t, s.c.Rx().Len())
		})
	}
	t.Run("with the window closed", func(t *testing.T) {
		s := opened(t, Config{Buffers: Buffers{Recv: 1000}})
		s.send(ACK, 1, 1, 1000)
		s.expect(ACK, 1, 1001, 0)
		s.send(RST, 1001, 0, 0)
		assert.Equal(t, StateClosed, s.c.State(), "RFC 9293 §3.10.7.4: valid RSTs count then too")
	})
}

// RFC 5961 §4.2: in a synchronized state any SYN, whatever its sequence number, causes a challenge
// ACK and changes nothing.
func TestRFC5961_4_2_SYN(t *testing.T) {
	s := opened(t, Config{})
	for _, seq := range []uint32{0, 1, 500, 1 << 30, ^uint32(1 << 29)} {
		for _, flags := range []Flags{SYN, SYN | ACK, SYN | FIN} {
			s.now = s.now.Add(time.Second)
			s.send(flags, seq, 1, 0)
			s.expect(ACK, 1, 1, 0)
			s.quiet()
		}
	}
	assert.Equal(t, StateEstablished, s.c.State())
	assert.Equal(t, uint64(15), s.h.Drops()[DropSYN])
	// A peer that has restarted answers that ACK with a reset and may then connect.
	s.send(RST, 1, 0, 0)
	assert.Equal(t, StateClosed, s.c.State())
	s.iss += 5000
	s.send(SYN, 77777, 0, 0)
	s.expect(SYN|ACK, 0, 77778, 0)
}

// RFC 9293 §3.10.7.4: in SYN-RECEIVED a SYN within the window returns the connection to LISTEN. A
// retransmission of the first SYN is answered at a limited rate.
func TestRFC9293_3_10_7_4_SYNInSynReceived(t *testing.T) {
	s := newScript(t, Config{})
	s.listen(1)
	s.send(SYN, 0, 0, 0, fullOptions)
	s.expect(SYN|ACK, 0, 1, 0)
	answers := 0
	for range 1000 {
		s.send(SYN, 0, 0, 0, fullOptions)
		s.now = s.now.Add(time.Millisecond / 2)
		s.collect()
		answers += len(s.out)
		s.out = nil
	}
	assert.LessOrEqual(t, answers, 6, "at most once every half RTOMin")
	s.send(SYN, 100, 0, 0, fullOptions)
	s.quiet()
	assert.Zero(t, s.h.numConns())
	assert.Zero(t, s.l.halfOpen)

	s = newScript(t, Config{})
	s.connect()
	s.expect(SYN, 0, 0, 0)
	s.send(SYN, 0, 0, 0, fullOptions)
	s.expect(SYN|ACK, 0, 1, 0)
	s.send(SYN, 100, 0, 0)
	s.expect(ACK, 1, 1, 0)
	assert.Equal(t, StateSynReceived, s.c.State(), "a connection that we open stays")
}

// RFC 5961 §5.2: data is accepted only with an ACK between SND.UNA - MAX.SND.WND and SND.NXT.
func TestRFC5961_5_2_BlindData(t *testing.T) {
	cases := []struct {
		name string
		ack  uint32
		ok   bool
	}{
		{"SND.NXT", 100001, true},
		{"SND.UNA", 90001, true},
		{"between", 95001, true},
		{"SND.UNA - MAX.SND.WND", 90001 - 65535, true},
		{"one less", 90001 - 65536, false},
		{"SND.NXT + 1", 100002, false},
		{"far ahead", 1 << 30, false},
		{"far behind", ^uint32(1 << 30), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := opened(t, Config{})
			for ack := uint32(1); ack < 90001; ack += 10000 {
				s.write(10000)
				s.collect()
				s.send(ACK, 1, ack+10000, 0)
			}
			s.write(10000)
			s.collect()
			s.out = nil
			require.Equal(t, uint64(90000), s.c.Info().Una)
			s.send(ACK|PSH, 1, c.ack, 100)
			s.collect()
			require.NotEmpty(t, s.out)
			assert.Equal(t, c.ok, s.c.Rx().Len() == 100)
			assert.Equal(t, c.ok, s.out[0].ack == 101)
			assert.Equal(t, c.ok, s.h.Drops()[DropAck] == 0)
		})
	}
	s := opened(t, Config{})
	s.send(0, 1, 0, 100) // a segment without ACK
	s.quiet()
	assert.Equal(t, uint64(1), s.h.Drops()[DropNoAck])
}

// RFC 9293 §3.10.7.4: a segment outside the window is acknowledged unless it is a reset.
func TestRFC9293_3_10_7_4_Unacceptable(t *testing.T) {
	cases := []struct {
		name  string
		flags Flags
		seq   uint32
		n     int
		reply bool
	}{
		{"old data", ACK, 1 << 31, 10, true},
		{"data beyond", ACK, 1 << 22, 10, true},
		{"a keepalive", ACK, 0, 0, true},
		{"an old FIN", FIN | ACK, ^uint32(99), 0, true},
		{"a reset", RST, ^uint32(99), 0, false},
		{"a reset with data", RST | ACK, 1 << 22, 10, false},
	}
	for _, c := range cases {
		s := opened(t, Config{})
		s.send(c.flags, c.seq, 1, c.n)
		if c.reply {
			s.expect(ACK, 1, 1, 0)
		}
		s.quiet()
		assert.Equal(t, StateEstablished, s.c.State(), c.name)
	}
}

// RFC 5961 §7: a connection sends at most ten challenge ACKs in five seconds. The host's limit per
// second is random, so that off-path attackers cannot know it.
func TestRFC5961_7_Budgets(t *testing.T) {
	flood := func(s *script) (sent int) {
		for range 1000 {
			s.send(SYN, 500, 0, 0)
			s.collect()
			sent += len(s.out)
			s.out = nil
		}
		return sent
	}
	s := opened(t, Config{})
	assert.Equal(t, 10, flood(s))
	assert.Equal(t, uint64(990), s.h.Counters().ChallengesSpared)
	assert.Equal(t, uint64(10), s.h.Counters().ChallengeAcks)
	s.now = s.now.Add(4 * time.Second)
	assert.Zero(t, flood(s))
	s.now = s.now.Add(time.Second)
	assert.Equal(t, 10, flood(s))

	s = newScript(t, Config{Limits: Limits{ChallengeAcks: 20}})
	ports := uint16(0)
	budgets := map[int]bool{}
	total := 0
	for range 50 {
		sent := 0
		for range 4 {
			ports++
			s.tuple.RemotePort = 1000 + ports
			if s.l != nil {
				s.l.Close(s.now)
			}
			s.accept(fullOptions)
			sent += flood(s)
		}
		require.GreaterOrEqual(t, sent, 10)
		require.Less(t, sent, 30)
		budgets[sent] = true
		total += sent
		s.now = s.now.Add(time.Second)
	}
	assert.Greater(t, len(budgets), 8)
	assert.InDelta(t, 20, float64(total)/50, 3, "the configured limit on average")
}
