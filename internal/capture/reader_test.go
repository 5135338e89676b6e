package capture_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/capture"
)

// ng writes the blocks of a pcapng file in a byte order, as other programs do.
type ng struct {
	binary.AppendByteOrder
	file []byte
}

// block appends a block of 16-bit, 32-bit and 64-bit fields and bytes.
func (n *ng) block(kind uint32, fields ...any) *ng {
	var body []byte
	for _, f := range fields {
		switch f := f.(type) {
		case uint16:
			body = n.AppendUint16(body, f)
		case uint32:
			body = n.AppendUint32(body, f)
		case uint64:
			body = n.AppendUint64(body, f)
		case []byte:
			body = append(body, f...)
		}
	}
	length := uint32(len(body) + 12)
	n.file = n.AppendUint32(n.AppendUint32(n.file, kind), length)
	n.file = n.AppendUint32(append(n.file, body...), length)
	return n
}

func (n *ng) section() *ng {
	return n.block(0x0a0d0d0a, uint32(0x1a2b3c4d), uint16(1), uint16(0), ^uint64(0))
}

func readAll(file []byte) (all []capture.Captured, err error) {
	err = capture.Read(bytes.NewReader(file), func(c *capture.Captured) error {
		p := *c
		p.Data = bytes.Clone(p.Data)
		all = append(all, p)
		return nil
	})
	return all, err
}

// TestReadFilesOfOtherPrograms reads files of other programs: in both byte orders, with each block
// type that has packets, with link-layer headers, and with time stamps of several resolutions.
func TestReadFilesOfOtherPrograms(t *testing.T) {
	packet := segment(t, layers.TCP{ACK: true}, 3) // 43 bytes, so the block needs padding
	padded := append(bytes.Clone(packet), 0)
	length := uint32(len(packet))
	ethernet := append(make([]byte, 12), 8, 0)
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		n := (&ng{AppendByteOrder: order}).section()
		n.block(1, uint16(228), uint16(0), uint32(0), uint16(2), uint16(3), []byte("if0\x00"))
		n.block(1, uint16(1), uint16(0), uint32(0),
			uint16(9), uint16(1), []byte{0x81, 0, 0, 0}, // time resolution of half a second
			uint16(14), uint16(8), uint64(100), uint16(0), uint16(0))
		n.block(0xbad, []byte("of somebody's own..."))
		n.block(6, uint32(0), uint32(1), uint32(500_000), length, length, padded,
			uint16(1), uint16(4), []byte("text"), uint16(2), uint16(4), uint32(2),
			uint16(4), uint16(8), uint64(7), uint16(0), uint16(0))
		n.block(2, uint16(0), uint16(3), uint32(0), uint32(1), length, length, padded)
		n.block(3, length, padded)
		n.block(6, uint32(1), uint32(0), uint32(3), length+14, length+14, ethernet, packet, []byte{0, 0, 0})
		file := n.file

		at := int64(1<<32+500_000) * 1000
		got, err := readAll(file)
		require.NoError(t, err)
		assert.Equal(t, []capture.Captured{
			{At: at, Name: "if0", Out: true, Length: len(packet), Data: packet, Comment: "text", Missed: 7},
			{At: 1000, Name: "if0", Length: len(packet), Data: packet},
			{Name: "if0", Length: len(packet), Data: packet},
			{At: 101.5e9, Interface: 1, Length: len(packet), Data: packet},
		}, got)

		// cuts the file everywhere after the first block
		for end := len(file) - 1; end > 28; end-- {
			cut, err := readAll(file[:end])
			require.NoError(t, err, "a file cut after %d bytes", end)
			assert.Subset(t, got, cut)
		}
	}
}

func TestReadErrors(t *testing.T) {
	le := func() *ng { return (&ng{AppendByteOrder: binary.LittleEndian}).section() }
	face := func(link uint16, options ...any) *ng {
		return le().block(1, append([]any{link, uint16(0), uint32(0)}, options...)...)
	}
	packet := []any{uint32(0), uint32(0), uint32(0), uint32(4), uint32(4), []byte{0x45, 0, 0, 0}}
	huge := le().file
	huge = append(huge, 6, 0, 0, 0, 0, 0, 0, 0x7f, 0, 0, 0, 0)
	for name, file := range map[string][]byte{
		"not a pcapng":                       []byte("what is this, in more than twelve bytes?"),
		"packet on interface 0":              le().block(6, packet...).file,
		"unknown link type: type 999":        face(999).block(6, packet...).file,
		"block of type 0x6 is too short":     face(228).block(6, uint32(0)).file,
		"block of type 0x1 is too short":     le().block(1, uint32(0)).file,
		"block of type 0x6 has length":       huge,
		"timestamp resolution 0x40: must be": face(1, uint16(9), uint16(1), []byte{64, 0, 0, 0}).file,
		"pcapng version 2: only version 1":   le().block(0x0a0d0d0a, uint32(0x1a2b3c4d), uint16(2), uint16(0), uint64(0)).file,
	} {
		_, err := readAll(file)
		assert.ErrorContains(t, err, name)
	}
	kept := face(228).block(6, uint32(0), uint32(0), uint32(0), uint32(5), uint32(5), []byte{0x45, 0, 0, 0})
	_, err := readAll(kept.file)
	assert.ErrorContains(t, err, "too short", "the length exceeds the bytes")
}

// FuzzRead checks that Read succeeds or returns an error, whatever the file contains. If gopacket
// can read a file with a supported link type, both read the same packets.
func FuzzRead(f *testing.F) {
	f.Add((&ng{AppendByteOrder: binary.BigEndian}).section().block(3, uint32(0)).file)
	var file bytes.Buffer
	w, err := capture.New(&file, interfaces, 0)
	require.NoError(f, err)
	require.NoError(f, w.Packet(noon, 1, capture.Outbound, "cwnd=10", segment(f, layers.TCP{ACK: true}, 5)))
	require.NoError(f, w.Statistics(noon, 1, 5, 2))
	require.NoError(f, w.Flush())
	f.Add(file.Bytes())
	f.Fuzz(func(t *testing.T, file []byte) {
		ours, err := readAll(file)
		if err != nil {
			return
		}
		r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.NgReaderOptions{WantMixedLinkType: true})
		if err != nil {
			return
		}
		for _, c := range ours {
			data, info, err := r.ReadPacketData()
			if err != nil {
				return
			}
			assert.LessOrEqual(t, len(c.Data), info.CaptureLength)
			assert.True(t, bytes.HasSuffix(data, c.Data), "%x", data)
		}
	})
}
