package rip_test

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/rip"
)

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(tb, err)
	return b
}

func entry(prefix string, cost uint32) rip.Entry {
	return rip.Entry{Prefix: netip.MustParsePrefix(prefix), Cost: cost}
}

// RFC 2453 §3.6: a request is 1 and a response 2. The course defines the rest.
func TestPacketBytes(t *testing.T) {
	tests := []struct {
		name  string
		bytes string
		want  rip.Packet
	}{
		{"request", "0001 0000", rip.Packet{Command: rip.Request, Entries: []rip.Entry{}}},
		{"empty response", "0002 0000", rip.Packet{Command: rip.Response, Entries: []rip.Entry{}}},
		{
			"networks", "0002 0002 00000000 0a000000 ffffff00 00000010 00000000 00000000",
			rip.Packet{Command: rip.Response, EntrySize: 12, Entries: []rip.Entry{
				entry("10.0.0.0/24", 0), entry("0.0.0.0/0", 16),
			}},
		},
		{
			"one address with a mask", "0002 0001 00000001 c0a80002 ffffffff",
			rip.Packet{Command: rip.Response, EntrySize: 12, Entries: []rip.Entry{
				entry("192.168.0.2/32", 1),
			}},
		},
		{
			"addresses without masks", "0002 0003 00000000 c0a80001 00000001 c0a80002 00000010 c0a80003",
			rip.Packet{Command: rip.Response, EntrySize: 8, Entries: []rip.Entry{
				entry("192.168.0.1/32", 0), entry("192.168.0.2/32", 1), entry("192.168.0.3/32", 16),
			}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.bytes)
			got, ok := rip.ParsePacket(b, make([]rip.Entry, 0, 4))
			require.True(t, ok)
			assert.Equal(t, tt.want, got)
			assert.Equal(t, b, got.Append(nil))
		})
	}
}

func TestParsePacketRefuses(t *testing.T) {
	many := strings.Repeat("00000001 0a000000 ffffff00", 65)
	tests := []struct{ name, bytes string }{
		{"nothing", ""},
		{"three bytes", "000200"},
		{"zeros", "0000 0000"},
		{"command 3", "0003 0000"},
		{"count 5 without entries", "0002 0005"},
		{"count 1 without entries", "0001 0001"},
		{
			"count 1 with two entries",
			"0002 0001 00000001 0a000000 ffffff00 00000001 0a000100 ffffff00",
		},
		{"count 2 with one entry", "0002 0002 00000001 0a000000 ffffff00"},
		{"an entry cut short", "0002 0001 00000001 0a000000 ffffff"},
		{"count 0 with an entry", "0002 0000 00000001 0a000000 ffffff00"},
		{"65 entries", "0002 0041" + many},
		{"65535 entries", "0002 ffff" + many},
		{"RFC 2453's own layout", "02020000 00020000 0a000000 ffffff00 00000000 00000001"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, ok := rip.ParsePacket(unhex(t, tt.bytes), nil)
			assert.False(t, ok)
		})
	}
	_, ok := rip.ParsePacket(unhex(t, "0002 0040"+many)[:4+64*12], nil)
	assert.True(t, ok, "64 entries are as many as a message may hold")
}

func TestParsePacketMasks(t *testing.T) {
	tests := []struct {
		mask, want string // an empty want means that the mask is rejected
	}{
		{"ffffffff", "10.1.2.3/32"},
		{"ffffff00", "10.1.2.0/24"},
		{"fffffe00", "10.1.2.0/23"},
		{"80000000", "0.0.0.0/1"},
		{"00000000", "0.0.0.0/0"},
		{"ff00ff00", ""},
		{"00ffffff", ""},
		{"fffffffd", ""},
		{"00000001", ""},
	}
	for _, tt := range tests {
		p, ok := rip.ParsePacket(unhex(t, "0002 0002 00000001 0a010203"+tt.mask+"00000002 0b000000 ff000000"), nil)
		require.True(t, ok, tt.mask)
		if tt.want == "" {
			assert.Equal(t, 1, p.Rejected, tt.mask)
			assert.Equal(t, []rip.Entry{entry("11.0.0.0/8", 2)}, p.Entries, "the next entry counts")
			continue
		}
		assert.Zero(t, p.Rejected, tt.mask)
		assert.Equal(t, entry(tt.want, 1), p.Entries[0], tt.mask)
	}
}

func FuzzParsePacket(f *testing.F) {
	f.Add(unhex(f, "0001 0000"))
	f.Add(unhex(f, "0002 0001 00000001 0a000000 ffffff00"))
	f.Add(unhex(f, "0002 0001 00000001 c0a80001"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, ok := rip.ParsePacket(b, nil)
		if !ok {
			return
		}
		require.LessOrEqual(t, len(p.Entries)+p.Rejected, rip.MaxEntries)
		again := p.Append(nil)
		q, ok := rip.ParsePacket(again, nil)
		require.True(t, ok)
		require.Equal(t, p.Command, q.Command)
		require.Len(t, q.Entries, len(p.Entries))
		for i, e := range p.Entries {
			require.Equal(t, e, q.Entries[i])
			require.Equal(t, e.Prefix.Masked(), e.Prefix)
		}
	})
}
