package ip_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ip"
)

// RFC 791 §3.1, RFC 1122 §3.2.1.8, RFC 1812 §5.2.4: valid options are skipped or found, and an
// error gives the position of the invalid byte.
func TestParseOptions(t *testing.T) {
	tests := []struct {
		name    string
		options []byte
		want    ip.Options
		pointer int // offset of the error; 0: the options are valid
	}{
		{"none", nil, ip.Options{}, 0},
		{"no-operations, the end, and garbage after it", []byte{1, 1, 0, 9}, ip.Options{}, 0},
		{"unknown", []byte{0x9e, 4, 1, 2}, ip.Options{}, 0},
		{"unknown of two bytes", []byte{0x9e, 2, 1, 1}, ip.Options{}, 0},
		{"security, RFC 1108", []byte{130, 3, 0, 0}, ip.Options{}, 0},
		{"router alert, RFC 2113 §2.1", []byte{148, 4, 0, 0}, ip.Options{}, 0},
		{"record route", []byte{1, 7, 7, 4, 0, 0, 0, 0}, ip.Options{RecordRoute: 21}, 0},
		{"a full option", []byte{7, 7, 8, 9, 9, 9, 9, 0}, ip.Options{RecordRoute: 20}, 0},
		{"timestamp", []byte{68, 8, 5, 0, 0, 0, 0, 0}, ip.Options{Timestamp: 20}, 0},
		{"of unknown flags", []byte{68, 8, 5, 2, 0, 0, 0, 0}, ip.Options{}, 0},
		{"a full option", []byte{68, 4, 5, 0xe0}, ip.Options{Timestamp: 20}, 0},
		{"loose source route", []byte{131, 7, 4, 1, 2, 3, 4, 0}, ip.Options{SourceRoute: 20}, 0},
		{"strict source route", []byte{137, 7, 8, 1, 2, 3, 4, 0}, ip.Options{SourceRoute: 20}, 0},
		{
			"several",
			[]byte{7, 7, 4, 0, 0, 0, 0, 68, 8, 5, 0, 0, 0, 0, 0, 0},
			ip.Options{RecordRoute: 20, Timestamp: 27},
			0,
		},

		{"no length", []byte{1, 1, 1, 7}, ip.Options{}, 23},
		{"a length of 0", []byte{1, 0x9e, 0, 0}, ip.Options{}, 21},
		{"a length of 1", []byte{0x9e, 1, 0, 0}, ip.Options{}, 20},
		{"beyond the header", []byte{0x9e, 5, 0, 0}, ip.Options{}, 20},
		{"record route without a pointer", []byte{7, 2, 0, 0}, ip.Options{}, 21},
		{"its pointer in its head", []byte{7, 7, 3, 0, 0, 0, 0, 0}, ip.Options{}, 22},
		{"its pointer between addresses", []byte{7, 7, 5, 0, 0, 0, 0, 0}, ip.Options{}, 22},
		{"two source routes", []byte{131, 3, 4, 137, 3, 4, 0, 0}, ip.Options{SourceRoute: 20}, 23},
		{"two record routes", []byte{7, 3, 4, 7, 3, 4, 0, 0}, ip.Options{RecordRoute: 20}, 23},
		{"two timestamps", []byte{68, 4, 5, 0, 68, 4, 5, 0}, ip.Options{Timestamp: 20}, 24},
		{"timestamp without flags", []byte{68, 3, 5, 0}, ip.Options{}, 21},
		{"its pointer in its head", []byte{68, 8, 4, 0, 0, 0, 0, 0}, ip.Options{}, 22},
		{"no room for an address", []byte{68, 8, 5, 1, 0, 0, 0, 0}, ip.Options{}, 22},
		{"overflow counter is full", []byte{68, 4, 5, 0xf0}, ip.Options{}, 23},
		{"router alert of three bytes", []byte{148, 3, 0, 0}, ip.Options{}, 21},
	}
	for _, tt := range tests {
		o, pointer, ok := ip.ParseOptions(tt.options)
		assert.Equal(t, tt.want, o, tt.name)
		assert.Equal(t, tt.pointer, pointer, tt.name)
		assert.Equal(t, tt.pointer == 0, ok, tt.name)
	}
}

// stamped returns the options after Stamp, on a node with the addresses 10.0.0.1 and 10.1.0.1.
func stamped(t *testing.T, options ...byte) []byte {
	t.Helper()
	_, _, ok := ip.ParseOptions(options)
	require.True(t, ok)
	return stampedAny(t, options...)
}

// stampedAny is like stamped, without the check of the options.
func stampedAny(t *testing.T, options ...byte) []byte {
	t.Helper()
	h := ip.Header{TTL: 9, Src: ip.V4(10, 0, 0, 9), Dst: ip.V4(10, 1, 0, 9), Options: options}
	h.TotalLen = h.Size()
	b := h.Append(nil)
	o, _, _ := ip.ParseOptions(options)
	if options[0] == 68 {
		o.Timestamp = ip.HeaderLen
	}
	o.Stamp(b, ip.V4(10, 1, 0, 1), 0x01020304, func(a netip.Addr) bool {
		return a == ip.V4(10, 0, 0, 1)
	})
	got, _, drop := ip.ParseHeader(b)
	require.Equal(t, ip.DropNone, drop, "RFC 1624 §3: the checksum is right")
	return got.Options
}

// RFC 791 §3.1: the entries that a node writes into each option. It does not write beyond an
// option's end.
func TestStamp(t *testing.T) {
	assert.Equal(t, []byte{1, 7, 11, 8, 10, 1, 0, 1, 0, 0, 0, 0},
		stamped(t, 1, 7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0), "record route, at an odd byte")
	assert.Equal(t, []byte{7, 7, 8, 9, 9, 9, 9, 0}, stamped(t, 7, 7, 8, 9, 9, 9, 9, 0),
		"a full option")
	assert.Equal(t, []byte{68, 8, 9, 0, 1, 2, 3, 4}, stamped(t, 68, 8, 5, 0, 0, 0, 0, 0),
		"only a timestamp")
	assert.Equal(t, []byte{68, 12, 13, 1, 10, 1, 0, 1, 1, 2, 3, 4},
		stamped(t, 68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0), "with the address")
	assert.Equal(t, []byte{68, 12, 13, 3, 10, 0, 0, 1, 1, 2, 3, 4},
		stamped(t, 68, 12, 5, 3, 10, 0, 0, 1, 0, 0, 0, 0), "with a specified address of the node")
	other := []byte{68, 12, 5, 3, 10, 0, 0, 7, 0, 0, 0, 0}
	assert.Equal(t, other, stamped(t, other...), "another node's address is no match")
	assert.Equal(t, []byte{68, 4, 5, 0x30}, stamped(t, 68, 4, 5, 0x20), "the overflow is counted")
	assert.Equal(t, []byte{68, 12, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0},
		stampedAny(t, 68, 12, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0), "room for half of an entry")
	assert.Equal(t, []byte{1, 1, 1, 0}, stamped(t, 1, 1, 1, 0))
}

func FuzzOptions(f *testing.F) {
	f.Add([]byte{7, 7, 4, 0, 0, 0, 0, 68, 8, 5, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{68, 12, 5, 3, 10, 0, 0, 1, 0, 0, 0, 0})
	f.Add([]byte{68, 16, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{131, 7, 4, 1, 2, 3, 4, 0})
	f.Fuzz(func(t *testing.T, options []byte) {
		options = options[:min(len(options), 40)]
		options = options[:len(options)/4*4]
		o, pointer, ok := ip.ParseOptions(options)
		if !ok {
			require.GreaterOrEqual(t, pointer, ip.HeaderLen)
			require.Less(t, pointer, ip.HeaderLen+len(options))
			return
		}
		h := ip.Header{TTL: 9, Options: options}
		h.TotalLen = h.Size()
		b := h.Append(nil)
		for range 12 { // more entries than fit
			o.Stamp(b, ip.V4(10, 0, 0, 1), 7, func(netip.Addr) bool { return true })
		}
		got, _, drop := ip.ParseHeader(b)
		require.Equal(t, ip.DropNone, drop)
		// RFC 791 §3.1: an option whose free space is not a multiple of an entry is an error once
		// only the rest of that space is left.
		if again, _, ok := ip.ParseOptions(got.Options); ok {
			require.Equal(t, o, again)
		}
	})
}
