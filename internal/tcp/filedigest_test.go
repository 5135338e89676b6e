package tcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var digestOptions = Options{MSS: 1460, FileDigest: true}

// RFC 6994 §3: an experiment is in use if both SYNs name it. No other segment carries it.
func TestFileDigestInTheSYN(t *testing.T) {
	for name, answer := range map[string]Options{
		"accepted": digestOptions, "unknown": {MSS: 1460}, "no options": {},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, Config{})
			s.connect()
			s.set(func(o *Sockopts) { o.FileDigest = true })
			syn := s.expect(SYN, 0, 0, 0)
			assert.True(t, syn.options.FileDigest)
			s.send(SYN|ACK, 0, 1, 0, answer)
			assert.False(t, s.expect(ACK, 1, 1, 0).options.FileDigest)
			assert.Equal(t, answer.FileDigest, s.c.Sockopts().FileDigest)
		})
	}
}

func TestFileDigestInTheSYNACK(t *testing.T) {
	for name, tt := range map[string]struct{ offered, accepts bool }{
		"both": {true, true}, "the peer": {true, false}, "the listener": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, Config{})
			s.listen(1)
			require.NoError(t, s.l.SetSockopts(Sockopts{FileDigest: tt.accepts}))
			s.send(SYN, 0, 0, 0, Options{MSS: 1460, FileDigest: tt.offered})
			agreed := tt.offered && tt.accepts
			assert.Equal(t, agreed, s.expect(SYN|ACK, 0, 1, 0).options.FileDigest)
			s.send(ACK, 1, 1, 0)
			c, ok := s.l.Accept()
			require.True(t, ok)
			assert.Equal(t, agreed, c.Sockopts().FileDigest, "a reduced connection keeps it, too")
			s.quiet()
		})
	}
}

// A cookie has no room for the offer, so the SYN-ACK does not accept it.
func TestCookieNegotiatesNoFileDigest(t *testing.T) {
	s := always(t, Knobs{})
	require.NoError(t, s.l.SetSockopts(Sockopts{FileDigest: true}))
	g := s.sendSYNForCookie(SYN, digestOptions)
	assert.False(t, g.options.FileDigest)
	s.returnCookie(g)
	assert.False(t, s.c.Sockopts().FileDigest)
}

// RFC 6994 §3.1: the option has kind 253 and a 32-bit identifier. The host ignores other
// experiments.
func TestFileDigestOptionFormat(t *testing.T) {
	o := Options{FileDigest: true}
	wire := make([]byte, o.size())
	o.put(wire)
	assert.Equal(t, []byte{1, 1, 253, 6, 'T', 'I', 'D', 'E'}, wire)
	var got Options
	require.True(t, got.parse(wire))
	assert.Equal(t, o, got)
	got = Options{}
	require.True(t, got.parse([]byte{1, 1, 253, 6, 'T', 'I', 'D', 'Y', 253, 4, 'T', 'I'}))
	assert.False(t, got.FileDigest)
	all := Options{
		MSS: 1460, HasWindowScale: true, SACKPermitted: true, HasTimestamps: true,
		UserTimeout: 9, FileDigest: true,
	}
	assert.LessOrEqual(t, all.size(), 40, "they fit into a SYN")
}
