package rcp_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/rcp"
)

// The expected bytes come from the encoder of founding document 000, for the same fields.
func TestPackets(t *testing.T) {
	bits := make(rcp.Bitmap, 4)
	for _, i := range []int{1, 3, 8, 31} {
		bits.Set(i)
	}
	wide := make(rcp.Bitmap, 8)
	wide.Set(0)
	wide.Set(32)
	wide.Set(63)
	for _, c := range []struct {
		name string
		p    rcp.Packet
		wire string
	}{
		{"DAT", rcp.Packet{Type: rcp.DAT, Seq: 0x01020304, Data: []byte("hi")}, "\x01\x01\x02\x03\x04hi"},
		{"the DAT that opens", rcp.Packet{Type: rcp.DAT}, "\x01\x00\x00\x00\x00"},
		{"ACK", rcp.Packet{Type: rcp.ACK, Seq: 5, Bitmap: bits}, "\x02\x00\x00\x00\x05\x80\x00\x01\x0a"},
		{
			"ACK of a wider fence",
			rcp.Packet{Type: rcp.ACK, Seq: 5, Bitmap: wide},
			"\x02\x00\x00\x00\x05\x00\x00\x00\x01\x80\x00\x00\x01",
		},
		{"FIN", rcp.Packet{Type: rcp.FIN, Seq: 0xffffffff}, "\x03\xff\xff\xff\xff"},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.wire, string(c.p.Append(nil)))
			p, v := rcp.Parse([]byte(c.wire))
			require.Equal(t, rcp.Accepted, v)
			assert.Equal(t, c.p.Type, p.Type)
			assert.Equal(t, c.p.Seq, p.Seq)
			assert.Equal(t, string(c.p.Data), string(p.Data))
			assert.Equal(t, string(c.p.Bitmap), string(p.Bitmap))
		})
	}
	assert.Equal(t, 32, bits.Len())
	for i := range 32 {
		assert.Equal(t, i == 1 || i == 3 || i == 8 || i == 31, bits.Has(i), "bit %d", i)
	}
}

func TestMalformedPackets(t *testing.T) {
	for _, c := range []struct {
		wire string
		want rcp.Verdict
	}{
		{"", rcp.ShortHeader},
		{"\x01\x00\x00\x00", rcp.ShortHeader},
		{"\x00\x00\x00\x00\x00", rcp.UnknownType},
		{"\x04\x00\x00\x00\x00", rcp.UnknownType},
		{"\x02\x00\x00\x00\x00", rcp.BadBitmap},
		{"\x02\x00\x00\x00\x00\x00\x00\x00", rcp.BadBitmap},
		{"\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00", rcp.BadBitmap},
		{"\x02\x00\x00\x00\x00" + string(make([]byte, 132)), rcp.BadBitmap},
		{"\x03\x00\x00\x00\x00\x00", rcp.TrailingBytes},
	} {
		_, v := rcp.Parse([]byte(c.wire))
		assert.Equal(t, c.want, v, "%x", c.wire)
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for v := rcp.Accepted; v <= rcp.UnsentACK; v++ {
		require.NotEmpty(t, v.String())
		require.False(t, seen[v.String()], "%q twice", v)
		seen[v.String()] = true
	}
	assert.Equal(t, "unknown verdict", (rcp.UnsentACK + 1).String())
	assert.Equal(t, "DAT ACK FIN unknown",
		rcp.DAT.String()+" "+rcp.ACK.String()+" "+rcp.FIN.String()+" "+rcp.Type(9).String())
	assert.Equal(t, "connecting open lingering closed unknown", rcp.Connecting.String()+" "+
		rcp.Open.String()+" "+rcp.Lingering.String()+" "+rcp.Closed.String()+" "+
		rcp.State(9).String())
}

// Append restores every packet that Parse accepts, byte for byte.
func FuzzParse(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x07data"))
	f.Add([]byte("\x02\x00\x00\x00\x05\x80\x00\x01\x0a"))
	f.Add([]byte("\x02\x00\x00\x00\x05\x80\x00\x01"))
	f.Add([]byte("\x03\x00\x00\x00\x05"))
	f.Add([]byte("\x03\x00\x00\x00\x05!"))
	f.Add([]byte("\x09\x00\x00\x00\x05"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, v := rcp.Parse(b)
		if v != rcp.Accepted {
			return
		}
		require.True(t, bytes.Equal(b, p.Append(nil)), "%x", b)
		for i := range p.Bitmap.Len() {
			p.Bitmap.Has(i)
		}
	})
}
