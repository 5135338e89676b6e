package tcp

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unhex reads bytes as captures print them.
func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func TestParseHeader(t *testing.T) {
	// A SYN of Linux: MSS 1460, SACK permitted, timestamps, no-op, window scale 7.
	b := unhex(t, "c3a6005015b1a2c400000000a002faf0d7a90000"+
		"020405b40402080a1a2b3c4d000000000103030768690a")
	src, dst, h, payload, ok := ParseHeader(b)
	require.True(t, ok)
	assert.Equal(t, uint16(50086), src)
	assert.Equal(t, uint16(80), dst)
	assert.Equal(t, Header{
		Seq: 0x15b1a2c4, Flags: SYN, Window: 64240,
		Options: Options{
			MSS: 1460, SACKPermitted: true, HasTimestamps: true, TSVal: 0x1a2b3c4d,
			HasWindowScale: true, WindowScale: 7,
		},
	}, h)
	assert.Equal(t, "hi\n", string(payload))

	// An ACK with two SACK blocks after timestamps.
	b = unhex(t, "0050c3a60000100020002000d01000e500000000"+
		"0101080a0000000100000002"+"0101051200003000000040000000500000006000")
	_, _, h, payload, ok = ParseHeader(b)
	require.True(t, ok)
	assert.Empty(t, payload)
	assert.Equal(t, uint8(2), h.Options.SACKCount)
	assert.Equal(t, SACKBlock{0x3000, 0x4000}, h.Options.SACK[0])
	assert.Equal(t, SACKBlock{0x5000, 0x6000}, h.Options.SACK[1])
}

func TestParseHeaderRejects(t *testing.T) {
	good := "0050c3a6000010002000200060100010000000000"
	for name, s := range map[string]string{
		"nothing":           "",
		"19 bytes":          "0050c3a60000100020002000501000e5000000",
		"offset below five": "0050c3a60000100020002000401000e500000000",
		"offset beyond":     "0050c3a60000100020002000601000e500000000",
		"option length 0":   good[:39] + "0" + "02000000",
		"option length 1":   good[:39] + "0" + "02010000",
		"option past end":   good[:39] + "0" + "01010205",
		"no length":         good[:39] + "0" + "01010102",
	} {
		_, _, _, _, ok := ParseHeader(unhex(t, s))
		assert.False(t, ok, name)
	}
	for name, opts := range map[string]string{
		"end of list":          "00ffffff",
		"unknown is skipped":   "fe040000",
		"wrong length skipped": "03040701",
		"no-ops":               "01010101",
	} {
		_, _, h, _, ok := ParseHeader(unhex(t, good[:39]+"0"+opts))
		assert.True(t, ok, name)
		assert.Zero(t, h.Options, name)
	}
	_, _, h, _, ok := ParseHeader(unhex(t, good[:39]+"0"+"010303ff"))
	assert.True(t, ok)
	assert.Equal(t, uint8(14), h.Options.WindowScale, "RFC 7323 §2.3")
}

func TestHeaderRoundTrip(t *testing.T) {
	for _, o := range []Options{
		{},
		{MSS: 1360},
		{MSS: 1360, SACKPermitted: true, HasWindowScale: true, WindowScale: 5},
		{MSS: 1, SACKPermitted: true, HasTimestamps: true, TSVal: 1, TSEcr: 2, HasWindowScale: true},
		{SACKCount: 4, SACK: [4]SACKBlock{{1, 2}, {3, 4}, {5, 6}, {7, 8}}},
		{HasTimestamps: true, TSVal: 9, SACKCount: 3, SACK: [4]SACKBlock{{1, 2}, {3, 4}, {5, 6}}},
	} {
		h := Header{Seq: 1, Ack: 2, Flags: ACK | PSH, Window: 3, Urgent: 4, Options: o}
		b := make([]byte, h.Size())
		for i := range b {
			b[i] = 0xaa
		}
		h.Put(b, 80, 81)
		assert.Zero(t, len(b)%4)
		assert.LessOrEqual(t, len(b), 60)
		assert.Zero(t, b[16]|b[17], "the caller sets the checksum")
		src, dst, got, _, ok := ParseHeader(b)
		assert.True(t, ok)
		assert.Equal(t, h, got)
		assert.Equal(t, [2]uint16{80, 81}, [2]uint16{src, dst})
	}
}

func TestNames(t *testing.T) {
	assert.Equal(t, "FIN|ACK", (FIN | ACK).String())
	assert.Equal(t, "10.0.0.1:80 > 10.0.0.2:4000", newScript(t, Config{}).tuple.String())
	seen := map[string]bool{}
	for d := range NumDrops + 1 {
		seen[d.String()] = true
	}
	assert.Len(t, seen, int(NumDrops)+1)
	for l := range numLimits + 1 {
		seen[l.String()] = true
	}
	assert.Len(t, seen, int(NumDrops)+1+int(numLimits))
	train := Train{MSS: 10, Len: 31}
	assert.Equal(t, 4, train.Segments())
	assert.Equal(t, 1, (&Train{}).Segments())
}

func TestRFC9293_3_4_SequenceArithmetic(t *testing.T) {
	for _, c := range []struct {
		ref  uint64
		s    uint32
		want uint64
	}{
		{1 << 32, 0, 1 << 32},
		{1 << 32, 0xffffffff, 1<<32 - 1},
		{1<<32 - 1, 0, 1 << 32},
		{5 << 32, 0x7fffffff, 5<<32 + 0x7fffffff},
		{5 << 32, 0x80000000, 5<<32 - 0x80000000},
		{5<<32 + 0xfffffff0, 5, 6<<32 + 5},
	} {
		assert.Equal(t, c.want, widen(c.ref, c.s))
		assert.Equal(t, c.s, uint32(widen(c.ref, c.s)))
	}
	assert.True(t, after(5, 0xfffffff0))
	assert.False(t, after(0xfffffff0, 5))
	assert.False(t, after(7, 7))
	assert.Equal(t, uint64(0), streamed(wide(9), wide(9)))
	assert.Equal(t, uint64(3), streamed(wide(9)+4, wide(9)))
}
