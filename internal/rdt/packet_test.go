package rdt_test

import (
	"crypto/md5"
	"encoding/hex"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/rdt"
)

// The test checks the layout in packet.go byte by byte, with the digest of RFC 1321 or the CRC32c
// of RFC 9260 §6.8 over the rest.
func TestPacketsOnTheWire(t *testing.T) {
	raw := rdt.Raw{
		Sequence: 0x01020304, Stream: 0x0506, Stamp: 0x0708090a0b0c0d0e, State: rdt.StateCompressed,
		Offset: 0x11121314, Arrived: 0x21222324, Payload: []byte("pay"),
	}
	const data = "01020304" + "*" + "0506" + "0708090a0b0c0d0e" + "0002" + "11121314" + "706179"
	const ack = "01020304" + "*"
	const echo = "01020304" + "*" + "21222324" + "0708090a0b0c0d0e"
	for _, sum := range []rdt.Checksum{rdt.MD5, rdt.CRC32C} {
		cfg := rdt.Config{Checksum: sum}
		bare := raw
		bare.Payload = nil
		for want, got := range map[string][]byte{
			data: raw.Data(cfg), ack: bare.Ack(cfg), echo: bare.Echo(cfg),
		} {
			rest, err := hex.DecodeString(strings.ReplaceAll(want, "*", ""))
			require.NoError(t, err)
			digest := md5.Sum(rest)
			is := hex.EncodeToString(digest[:])
			if sum == rdt.CRC32C {
				crc := crc32.Checksum(rest, crc32.MakeTable(crc32.Castagnoli))
				is = hex.EncodeToString([]byte{
					byte(crc >> 24), byte(crc >> 16), byte(crc >> 8), byte(crc),
				})
			}
			assert.Equal(t, strings.ReplaceAll(want, "*", is), hex.EncodeToString(got), sum)
		}
	}
	assert.Len(t, rdt.Raw{}.Data(rdt.Config{}), 36, "the document's header")
	assert.Len(t, rdt.Raw{}.Ack(rdt.Config{}), 20, "and its acknowledgment")
}

// A request for the maximum number of objects fits in a datagram that every host must accept.
func TestLongestRequestFits(t *testing.T) {
	r, err := rdt.NewReceiver(start, rdt.Config{}, numbers(rdt.MaxObjects)...)
	require.NoError(t, err)
	b, ok := r.Output(start, nil)
	require.True(t, ok)
	assert.LessOrEqual(t, 20+8+len(b), 576, "RFC 1122 §3.3.2")
}

func TestInvalidConfigurations(t *testing.T) {
	for _, c := range []rdt.Config{
		{Payload: -1},
		{Payload: rdt.MaxPayload + 1},
		{Window: -1},
		{Window: rdt.MaxWindow + 1},
		{Duplicates: -3},
		{Timeout: -1},
		{Timeout: 2 * time.Hour},
		{MinTimeout: 2 * time.Second, MaxTimeout: time.Second},
		{MaxBytes: -1},
		{Linger: -1},
		{Patience: -1},
		{Checksum: 9},
	} {
		_, err := rdt.NewSender(c, nil)
		require.ErrorIs(t, err, rdt.ErrConfig, "%+v", c)
		_, err = rdt.NewReceiver(start, c, 1)
		require.ErrorIs(t, err, rdt.ErrConfig, "%+v", c)
	}
	_, err := rdt.NewReceiverFrom(start, rdt.Config{Push: true}, 7, 1)
	require.ErrorIs(t, err, rdt.ErrConfig)
}

func TestInvalidObjects(t *testing.T) {
	for _, wanted := range [][]uint16{nil, {3, 3}, numbers(rdt.MaxObjects + 1)} {
		_, err := rdt.NewReceiver(start, rdt.Config{}, wanted...)
		require.ErrorIs(t, err, rdt.ErrObject)
	}
	_, err := rdt.NewSender(rdt.Config{}, make([][]byte, 1<<16+1))
	require.ErrorIs(t, err, rdt.ErrObject)
	s, err := rdt.NewSender(rdt.Config{}, nil)
	require.NoError(t, err)
	require.NoError(t, s.Serve(numbers(rdt.MaxObjects)...))
	require.NoError(t, s.Serve(numbers(rdt.MaxObjects)...), "those it has already")
	require.ErrorIs(t, s.Serve(1000), rdt.ErrObject)
}

func TestDropNames(t *testing.T) {
	seen := map[string]bool{}
	for d := rdt.DropLength; d <= rdt.DropClosed; d++ {
		require.NotEmpty(t, d.String())
		require.NotEqual(t, "none", d.String())
		require.False(t, seen[d.String()], d.String())
		seen[d.String()] = true
	}
	assert.Equal(t, "none", (rdt.DropClosed + 1).String())
}

// The checksum of a packet that the caller knows to be intact is not verified. All other packets
// are verified, whatever came before.
func TestSoundPacketsAreNotVerified(t *testing.T) {
	r, err := rdt.NewReceiver(start, small, 1)
	require.NoError(t, err)
	wrong := func(seq uint32) []byte {
		b := rdt.Raw{Stream: 1, Sequence: seq, Offset: seq, Payload: []byte("x")}.Data(small)
		b[5] ^= 1
		return b
	}
	r.InputSound(start, wrong(0))
	assert.Equal(t, uint64(1), r.Info().Received)
	r.Input(start, wrong(1))
	assert.Equal(t, uint64(1), r.Info().Received)
	assert.Equal(t, uint64(1), r.Info().Drops[rdt.DropChecksum])
}
