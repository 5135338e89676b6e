package rip_test

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rip"
)

// keyed returns the configuration of undelayed with keys on interface 0.
func keyed(keys ...rip.Key) rip.Config {
	cfg := undelayed()
	cfg.Interfaces[0].Keys = keys
	cfg.Sequence = 1000
	return cfg
}

func key(id uint8, a rip.Algorithm, secret string) rip.Key {
	return rip.Key{ID: id, Algorithm: a, Secret: []byte(secret)}
}

// signed returns the first response of a Speaker that starts after the given time.
func signed(tb testing.TB, cfg rip.Config, after time.Duration) []byte {
	tb.Helper()
	x := newStopped2(tb, cfg)
	x.now = clock.Time(1).Add(after)
	x.Start(x.now)
	x.hear2(tb)
	return x.fetch()[1].Payload
}

// hear2 delivers a route to the Speaker, so that it has one to announce.
func (x *bench2) hear2(tb testing.TB) {
	tb.Helper()
	require.Equal(tb, rip.Accepted, x.say(c, rip.Port, message2(tb, rip.Response, 2,
		"10.5.0.0/16=1")))
}

// RFC 2453 §4.1: the first entry contains the password.
func TestPasswordOnTheWire(t *testing.T) {
	m := signed(t, keyed(key(0, rip.Password, "tide")), 0)
	assert.Equal(t, "\xff\xff\x00\x02tide\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", string(m[4:24]))
	assert.Len(t, m, 4+20+3*20)
}

// RFC 4822 §2.1: the message has an authentication entry before the others and a trailer after
// them. RFC 4822 §2: the digest covers the whole message, with the secret in the digest's place.
func TestKeyedMD5OnTheWire(t *testing.T) {
	m := signed(t, keyed(key(7, rip.KeyedMD5, "tide")), 5*time.Second)
	const offset = 4 + 20 + 3*20
	require.Len(t, m, offset+4+16)
	assert.Equal(t, []byte{0xff, 0xff, 0, 3, 0, offset, 7, 20, 0, 0, 0x03, 0xed, 0, 0, 0, 0, 0, 0, 0, 0}, m[4:24])
	assert.Equal(t, []byte{0xff, 0xff, 0, 1}, m[offset:offset+4])
	sum := md5.Sum(append(m[:offset+4:offset+4], "tide\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"...))
	assert.Equal(t, sum[:], m[offset+4:])
}

// RFC 4822 §2.5: the digest is an HMAC over the message, with Apad in the digest's place.
func TestHMACOnTheWire(t *testing.T) {
	m := signed(t, keyed(key(9, rip.HMACSHA256, "tide")), 0)
	const offset = 4 + 20 + 3*20
	require.Len(t, m, offset+4+32)
	assert.Equal(t, byte(32), m[11])
	h := hmac.New(sha256.New, []byte("tide"))
	h.Write(m[:offset+4])
	for range 8 {
		h.Write([]byte{0x87, 0x8f, 0xe1, 0xf3})
	}
	assert.Equal(t, h.Sum(nil), m[offset+4:])
}

// A Speaker accepts messages that another signs with the same key, and rejects those signed with
// another key.
func TestAlgorithmsAgree(t *testing.T) {
	for a := rip.Password; a <= rip.HMACSHA512; a++ {
		t.Run(a.String(), func(t *testing.T) {
			secret := "tide and pool"
			if a > rip.KeyedMD5 {
				secret = fmt.Sprintf("%0100d", 7) // longer than any digest (RFC 4822 §2.5)
			}
			m := signed(t, keyed(key(3, a, secret)), 0)
			x := newBench2(t, keyed(key(3, a, secret)))
			require.Equal(t, rip.Accepted, x.say(b, rip.Port, m))
			assert.Contains(t, x.learned(), "10.5.0.0/16 via 10.0.0.2 cost 3")

			wrong, want := newBench2(t, keyed(key(3, a, "ebb"))), rip.RefusedDigest
			if a == rip.Password {
				want = rip.RefusedPassword
			}
			assert.Equal(t, want, wrong.say(b, rip.Port, m))
			assert.Empty(t, wrong.learned())
			assert.Equal(t, []rip.Refused{{Reason: want, Count: 1}}, wrong.Refused())
		})
	}
}

// RFC 2453 §5.2 and RFC 4822 §2: authentication rejects these messages, each for its reason.
func TestAuthenticationRefused(t *testing.T) {
	md5key := key(7, rip.KeyedMD5, "tide")
	m := signed(t, keyed(md5key), 0)
	plain := message2(t, rip.Response, 2, "10.5.0.0/16=1")
	password := signed(t, keyed(key(0, rip.Password, "tide")), 0)
	old := message2(t, rip.Response, 1, "172.16.0.0/16=1")
	copy(old[12:16], make([]byte, 4))
	edit := func(at int, v byte) []byte {
		e := append([]byte(nil), m...)
		e[at] ^= v
		return e
	}
	other := newBench2(t, keyed())
	assert.Equal(t, rip.RefusedAuthUnexpected, other.say(b, rip.Port, m))
	assert.Equal(t, rip.RefusedAuthUnexpected, other.say(b, rip.Port, password))
	for name, row := range map[string]struct {
		b    []byte
		want rip.Refusal
	}{
		"unchanged":             {m, rip.Accepted},
		"none":                  {plain, rip.RefusedNoAuth},
		"a header":              {plain[:4], rip.RefusedNoAuth},
		"version 1":             {old, rip.RefusedVersion},
		"a password":            {password, rip.RefusedAuthType},
		"another key id":        {edit(10, 1), rip.RefusedKeyID},
		"another digest length": {edit(11, 1), rip.RefusedTrailer},
		"another offset":        {edit(9, 1), rip.RefusedTrailer},
		"offset 0":              {edit(9, m[9]), rip.RefusedTrailer},
		"cut short":             {m[:len(m)-1], rip.RefusedTrailer},
		"no trailer":            {m[:24], rip.RefusedTrailer},
		"another trailer":       {edit(len(m)-17, 2), rip.RefusedTrailer},
		"another digest":        {edit(len(m)-1, 1), rip.RefusedDigest},
		"another metric":        {edit(len(m)-21, 1), rip.RefusedDigest},
		"another sequence":      {edit(15, 1), rip.RefusedDigest},
	} {
		x := newBench2(t, keyed(md5key))
		assert.Equal(t, row.want, x.say(b, rip.Port, row.b), name)
		assert.Equal(t, row.want == rip.Accepted, len(x.learned()) > 0, name)
	}
}

// RFC 4822 §2: a link may have several keys with different IDs. The first one signs.
func TestSeveralKeys(t *testing.T) {
	old, fresh := key(1, rip.KeyedMD5, "ebb"), key(2, rip.HMACSHA1, "flow")
	x := newBench2(t, keyed(fresh, old))
	assert.Equal(t, rip.Accepted, x.say(b, rip.Port, signed(t, keyed(old), 0)))
	assert.Equal(t, rip.Accepted, x.say(b, rip.Port, signed(t, keyed(fresh), 0)))
	x.wait(0)
	m := signed(t, keyed(fresh, old), 0)
	assert.Equal(t, byte(2), m[10])
}

// RFC 4822 §2: the sequence number of a key never decreases. It may repeat within one second. It
// increases with time, so a restart does not decrease it.
func TestSequenceNumbers(t *testing.T) {
	one, two := key(1, rip.KeyedMD5, "ebb"), key(2, rip.KeyedMD5, "flow")
	first, later := signed(t, keyed(one), 0), signed(t, keyed(one), 10*time.Second)
	assert.Equal(t, uint32(1010), binary.BigEndian.Uint32(later[12:]))
	x := newBench2(t, keyed(one, two))
	assert.Equal(t, rip.Accepted, x.say(b, rip.Port, later))
	assert.Equal(t, rip.Accepted, x.say(b, rip.Port, later))
	assert.Equal(t, rip.RefusedSequence, x.say(b, rip.Port, first))
	assert.Equal(t, rip.Accepted, x.say(b, rip.Port, signed(t, keyed(two), 0)),
		"each key has its own sequence number")

	t.Log("# a neighbor that was silent for longer than the route timeout may have restarted")
	x.wait(180*time.Second + 1)
	assert.Equal(t, rip.Accepted, x.say(b, rip.Port, first))
	assert.Equal(t, rip.Accepted, x.say(b, rip.Port, later))
	assert.Equal(t, rip.RefusedSequence, x.say(b, rip.Port, first))
	for _, r := range x.Refused() {
		assert.Equal(t, "sequence number decreased", r.Reason.String())
	}
}

// RFC 1058 §3.1: a message has at most 512 bytes. RFC 2453 §4.1: authentication takes one of the 25
// entries. The digest of RFC 4822 §2.1 follows the entries and counts as well: FRR rejects longer
// messages.
func TestMessagesHaveAtMost512Bytes(t *testing.T) {
	for _, row := range []struct {
		keys    []rip.Key
		entries int
		size    int
	}{
		{nil, 25, 504},
		{[]rip.Key{key(0, rip.Password, "tide")}, 24, 504},
		{[]rip.Key{key(1, rip.KeyedMD5, "tide")}, 23, 504},
		{[]rip.Key{key(1, rip.HMACSHA1, "tide")}, 23, 508},
		{[]rip.Key{key(1, rip.HMACSHA256, "tide")}, 22, 500},
		{[]rip.Key{key(1, rip.HMACSHA384, "tide")}, 21, 496},
		{[]rip.Key{key(1, rip.HMACSHA512, "tide")}, 21, 512},
	} {
		name := "none"
		if row.keys != nil {
			name = row.keys[0].Algorithm.String()
		}
		t.Run(name, func(t *testing.T) {
			cfg := keyed(row.keys...)
			x := newStopped2(t, cfg)
			for i := range 60 {
				x.SetExternal(x.now, rip.External{
					Prefix: entry(fmt.Sprintf("10.7.%d.0/24", i), 0).Prefix, Iface: -1,
				}, true)
			}
			x.Start(x.now)
			longest, responses := 0, 0
			for _, m := range x.fetch() {
				if m.Iface == 0 && m.Payload[0] == byte(rip.Response) {
					longest = max(longest, len(m.Payload))
					responses++
				}
			}
			assert.Equal(t, row.size, longest)
			assert.Equal(t, (62+row.entries-1)/row.entries, responses, "62 routes")
		})
	}
}

// RFC 1058 §3.1: an answer with more routes than fit in an authenticated message is sent as two
// messages.
func TestAnswersHaveAtMost512Bytes(t *testing.T) {
	x := newBench2(t, keyed(key(0, rip.Password, "tide")))
	ask := message2(t, rip.Request, 2, strings.Repeat("10.5.0.0/16=1 ", 25))
	sealed := signed(t, keyed(key(0, rip.Password, "tide")), 0)
	sealed = append(sealed[:4+20:4+20], ask[4:]...)
	sealed[0] = byte(rip.Request)
	require.Equal(t, rip.Accepted, x.say(b, 1234, sealed))
	var sizes []int
	for _, m := range x.fetch() {
		sizes = append(sizes, len(m.Payload))
	}
	assert.Equal(t, []int{4 + 25*20, 4 + 2*20}, sizes)
}

func TestFewerEntriesOnANarrowLink(t *testing.T) {
	cfg := keyed(key(1, rip.KeyedMD5, "tide"))
	for mtu, ok := range map[int]bool{68: false, 91: false, 92: true} {
		cfg.Interfaces[0].MTU = mtu
		_, err := rip.NewSpeaker(cfg)
		assert.Equal(t, ok, err == nil, "MTU %d: %v", mtu, err)
	}
	cfg.Interfaces[0].MTU = 111
	x := newStopped2(t, cfg)
	x.Start(x.now)
	messages := x.fetch()
	assert.Len(t, messages[1].Payload, 4+20+20+20, "one entry")
	assert.Len(t, messages[2].Payload, 4+20+20+20, "the second message has the other routes")
}

func TestInvalidKeys(t *testing.T) {
	for want, keys := range map[string][]rip.Key{
		"the key has no secret":     {key(1, rip.KeyedMD5, "")},
		"both a password and a key": {key(1, rip.KeyedMD5, "a"), key(0, rip.Password, "b")},
		"secret of 17 bytes":        {key(1, rip.KeyedMD5, "12345678901234567")},
		"duplicate key id 1":        {key(1, rip.KeyedMD5, "a"), key(1, rip.HMACSHA1, "b")},
		"unknown algorithm 9":       {key(1, 9, "a")},
		"secret of 20 bytes: mu":    {key(0, rip.Password, "12345678901234567890")},
	} {
		_, err := rip.NewSpeaker(keyed(keys...))
		require.ErrorIs(t, err, rip.ErrConfig)
		assert.ErrorContains(t, err, want)
	}
}
