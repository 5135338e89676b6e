package services_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// flipped joins 10.0.0.1 and 10.0.0.2 by a link that corrupts one segment from a to b. flip
// corrupts a segment, or returns false.
func flipped(t *testing.T, flip func(payload []byte) bool) (a, b *operator.Node) {
	t.Helper()
	near, left := link.Pipe(0)
	right, far := link.Pipe(0)
	relay := func(from, to *link.End, edit func(packet []byte)) {
		buf := make([]byte, ip.MaxPacketLen)
		for {
			n, err := from.Read(buf)
			if err != nil {
				assert.ErrorIs(t, err, io.EOF)
				return
			}
			edit(buf[:n])
			if _, err := to.Write(buf[:n]); err != nil {
				return // the node has closed the link
			}
		}
	}
	done := false
	go relay(left, right, func(packet []byte) {
		if _, segment, drop := ip.ParseHeader(packet); drop == 0 && !done {
			if _, _, _, payload, ok := tcp.ParseHeader(segment); ok && len(payload) > 0 {
				done = flip(payload)
			}
		}
	})
	go relay(right, left, func([]byte) {})
	fa, fb := testenv.TwoNodes(t)
	a = operatortest.Start(t, node.Config{Devices: map[string]link.Device{"if0": near}}, fa)
	b = operatortest.Start(t, node.Config{Devices: map[string]link.Device{"if0": far}}, fb)
	return a, b
}

// flipColumn flips the same bit in two 16-bit words that differ in it. So the Internet checksum of
// a segment with this payload does not change.
func flipColumn(payload []byte) bool {
	for i := 0; i+4 <= len(payload); i += 2 {
		x, y := binary.BigEndian.Uint16(payload[i:]), binary.BigEndian.Uint16(payload[i+2:])
		if differ := x ^ y; differ != 0 {
			bit := differ & -differ
			binary.BigEndian.PutUint16(payload[i:], x^bit)
			binary.BigEndian.PutUint16(payload[i+2:], y^bit)
			return true
		}
	}
	return false
}

// Two flips in one column pass TCP's checksum (RFC 1071). The digest after the file detects them at
// both ends.
func TestCorruptionThatPassesTheChecksumIsFound(t *testing.T) {
	file, data, digest := someFile(t)
	for name, tt := range map[string]struct {
		// number of bytes that the receiver has, and offset at which the sender starts
		there, offset int64
		flip          func(payload []byte) bool
	}{
		"a whole file": {0, 0, func(p []byte) bool { return len(p) > 1000 && flipColumn(p[100:]) }},
		"the rest of a file": {
			300_000, 300_000, func(p []byte) bool { return len(p) > 1000 && flipColumn(p[100:]) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := flipped(t, tt.flip)
			target := filepath.Join(t.TempDir(), "target")
			require.NoError(t, os.WriteFile(target+".part", data[:tt.there], 0o600))
			m := moveFile(t, a, b, control.SendFile{Path: file, Offset: tt.offset},
				control.RecvFile{Path: target, Resume: tt.there > 0})
			require.ErrorIs(t, m.sendErr, control.ErrMismatch)
			require.ErrorIs(t, m.recvErr, control.ErrMismatch)
			assert.NoFileExists(t, target)
			came, err := os.ReadFile(target + ".part")
			require.NoError(t, err)
			theirs := fmt.Sprintf("%x", sha256.Sum256(came))
			assert.NotEqual(t, digest, theirs)
			assert.ErrorContains(t, m.sendErr, "the digests differ: SHA-256 "+digest+" here, "+
				theirs+" at 10.0.0.2:9000")
			assert.ErrorContains(t, m.recvErr, "the digests differ: SHA-256 "+theirs+" here, "+
				digest+" at 10.0.0.1:")
		})
	}
}

// The data that a receiver resumes may belong to another file, or may have been corrupted before.
func TestDigestCoversTheWholeFile(t *testing.T) {
	a, b := twoNodes(t)
	file, data, digest := someFile(t)
	target := filepath.Join(t.TempDir(), "target")
	there := append([]byte("tidepoolz "), data[10:300_000]...)
	require.NoError(t, os.WriteFile(target+".part", there, 0o600))
	m := moveFile(t, a, b, control.SendFile{Path: file, Offset: 300_000},
		control.RecvFile{Path: target, Resume: true})
	require.ErrorIs(t, m.sendErr, control.ErrMismatch)
	require.ErrorIs(t, m.recvErr, control.ErrMismatch)
	assert.ErrorContains(t, m.recvErr, "receive it again without --resume")
	assert.NoFileExists(t, target)

	m = moveFile(t, a, b, control.SendFile{Path: file}, control.RecvFile{Path: target, Overwrite: true})
	require.NoError(t, m.sendErr)
	require.NoError(t, m.recvErr)
	assert.True(t, m.sent.Verified)
	assert.True(t, m.received.Verified)
	assert.Equal(t, digest, m.received.SHA256)
}

// A receiver fails before it stores anything if the sender resumes at a different offset.
func TestOffsetsThatDiffer(t *testing.T) {
	a, b := twoNodes(t)
	file, data, _ := someFile(t)
	target := filepath.Join(t.TempDir(), "target")
	require.NoError(t, os.WriteFile(target+".part", data[:300_000], 0o600))
	m := moveFile(t, a, b, control.SendFile{Path: file, Offset: 200_000},
		control.RecvFile{Path: target, Resume: true})
	require.ErrorIs(t, m.sendErr, control.ErrReset)
	require.ErrorContains(t, m.recvErr, "the sender starts at byte 200000")
	require.ErrorContains(t, m.recvErr, "--offset 300000 at the sender")
	info, err := os.Stat(target + ".part")
	require.NoError(t, err)
	assert.EqualValues(t, 300_000, info.Size())
}

// Transfers with other programs are plain streams.
func TestPlainPeersHaveNoDigest(t *testing.T) {
	a, b := twoNodes(t)
	file, data, _ := someFile(t)
	target := filepath.Join(t.TempDir(), "target")
	for name, off := range map[string]struct{ send, recv bool }{
		"sender": {true, false}, "receiver": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := moveFile(t, a, b, control.SendFile{Path: file, NoVerify: off.send},
				control.RecvFile{Path: target, NoVerify: off.recv, Overwrite: true})
			require.NoError(t, m.sendErr)
			require.NoError(t, m.recvErr)
			assert.False(t, m.sent.Verified)
			assert.False(t, m.received.Verified)
			got, err := os.ReadFile(target)
			require.NoError(t, err)
			assert.Equal(t, data, got)
		})
	}
	l, err := b.Node.TCP.Listen(netip.MustParseAddrPort("10.0.0.2:9001"), 1)
	require.NoError(t, err)
	taken, sent := make(chan []byte, 1), make(chan struct{})
	go func() {
		c, err := l.Accept()
		assert.NoError(t, err)
		got, err := io.ReadAll(c)
		assert.NoError(t, err)
		assert.NoError(t, c.Close())
		taken <- got
	}()
	go func() {
		_, err := control.Ask(t.Context(), a, control.SendFile{
			Path: file, Addr: operatortest.Second, Port: 9001,
		})
		assert.NoError(t, err)
		close(sent)
	}()
	assert.Equal(t, data, <-taken, "nothing but the file")
	<-sent
	require.NoError(t, l.Close())
}
