package services_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/operator"
)

// moved is the outcome of a transfer at both ends.
type moved struct {
	sent, received control.Transfer
	sendErr        error
	recvErr        error
}

// moveFile makes b receive a file and then a send it.
func moveFile(t *testing.T, a, b *operator.Node, send control.SendFile, recv control.RecvFile) (m moved) {
	t.Helper()
	listening, done := make(chan struct{}), make(chan struct{})
	first := true
	recv.Port = 9000
	recv.Progress = func(control.Progress) {
		if first {
			close(listening)
		}
		first = false
	}
	go func() {
		defer close(done)
		m.received, m.recvErr = control.Ask(t.Context(), b, recv)
	}()
	<-listening
	send.Addr, send.Port = netip.MustParseAddr("10.0.0.2"), 9000
	m.sent, m.sendErr = control.Ask(t.Context(), a, send)
	<-done
	return m
}

// someFile returns a file of slightly more than a megabyte, with its digest.
func someFile(t *testing.T) (path string, data []byte, digest string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	data = bytes.Repeat([]byte("tidepools "), 110_000)
	require.NoError(t, os.WriteFile(path, data, 0o644))
	sum := sha256.Sum256(data)
	return path, data, hex.EncodeToString(sum[:])
}

func TestResumedTransfer(t *testing.T) {
	a, b := twoNodes(t)
	file, data, digest := someFile(t)
	for name, tt := range map[string]struct {
		there  int // number of bytes in .part; -1: no such file
		offset int64
		want   int64 // offset at which the transfer must resume
	}{
		"behind all that is there": {300_000, 0, 300_000},
		"behind some of it":        {300_000, 1000, 1000},
		"with nothing there":       {-1, 0, 0},
		"with all of it there":     {len(data), 0, int64(len(data))},
	} {
		t.Run(name, func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "target")
			if tt.there >= 0 {
				require.NoError(t, os.WriteFile(target+".part", data[:tt.there], 0o644))
			}
			m := moveFile(t, a, b, control.SendFile{Path: file, Offset: tt.want}, control.RecvFile{
				Path: target, Resume: true, Offset: tt.offset, Size: int64(len(data)), SHA256: digest,
			})
			require.NoError(t, m.sendErr)
			require.NoError(t, m.recvErr)
			for _, end := range []control.Transfer{m.sent, m.received} {
				assert.Equal(t, digest, end.SHA256, "of the whole file, at either end")
				assert.Equal(t, tt.want, end.Offset)
				assert.Equal(t, int64(len(data))-tt.want, end.Bytes, "what was moved")
			}
			got, err := os.ReadFile(target)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(data, got))
			assert.NoFileExists(t, target+".part")
		})
	}
}

// An interrupted transfer reports the offset at which it can resume, and resumes there.
func TestInterruptedTransfer(t *testing.T) {
	a, b := twoNodes(t)
	file, data, digest := someFile(t)
	target := filepath.Join(t.TempDir(), "target")
	done := make(chan error, 1)
	listening := make(chan struct{})
	first := true
	go func() {
		_, err := control.Ask(t.Context(), b, control.RecvFile{
			Path: target, Port: 9000, Progress: func(control.Progress) {
				if first {
					close(listening)
				}
				first = false
			},
		})
		done <- err
	}()
	<-listening
	c, err := a.Node.TCP.Dial(t.Context(), netip.MustParseAddrPort("10.0.0.2:9000"))
	require.NoError(t, err)
	_, err = c.Write(data[:200_000])
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := os.Stat(target + ".part")
		return err == nil && info.Size() == 200_000
	}, time.Minute, time.Millisecond)
	c.Abort()
	assert.EqualError(t, <-done, "recvfile "+target+": connection reset by peer (200000 bytes are kept in "+
		target+".part: continue with --resume here and --offset 200000 at the sender)")
	m := moveFile(t, a, b, control.SendFile{Path: file, Offset: 200_000},
		control.RecvFile{Path: target, Resume: true})
	require.NoError(t, m.recvErr)
	assert.Equal(t, digest, m.received.SHA256)
	assert.Equal(t, digest, m.sent.SHA256)
}

func TestInvalidOffsets(t *testing.T) {
	a, b := twoNodes(t)
	file, data, _ := someFile(t)
	target := filepath.Join(t.TempDir(), "target")
	require.NoError(t, os.WriteFile(target+".part", []byte("1234"), 0o644))
	ask := func(r control.RecvFile) error {
		r.Path, r.Port = target, 9000
		_, err := control.Ask(t.Context(), b, r)
		return err
	}
	_, err := control.Ask(t.Context(), a, control.SendFile{
		Path: file, Addr: netip.MustParseAddr("10.0.0.2"), Port: 9000, Offset: int64(len(data)) + 1,
	})
	require.ErrorIs(t, err, control.ErrUsage)
	assert.ErrorContains(t, err, "offset 1100001: the file has 1100000 bytes")
	assert.ErrorContains(t, ask(control.RecvFile{Resume: true, Offset: 5}), "has only 4 bytes")
	assert.ErrorIs(t, ask(control.RecvFile{Offset: 2}), control.ErrUsage)
	assert.ErrorIs(t, ask(control.RecvFile{Size: -1}), control.ErrUsage)
	there, err := os.ReadFile(target + ".part")
	require.NoError(t, err)
	assert.Equal(t, "1234", string(there), "and nothing is lost")
}

// A file with an unexpected size or digest keeps its .part name, and the sender gets an error.
func TestUnexpectedFiles(t *testing.T) {
	a, b := twoNodes(t)
	file, _, digest := someFile(t)
	for want, recv := range map[string]control.RecvFile{
		"received 1100000 bytes, expected 7":       {Size: 7},
		"received 1100000 bytes, expected 1100001": {Size: 1100001},
		"SHA-256 " + digest:                        {SHA256: digest[1:] + "0"},
	} {
		advice := ": receive it again without --resume"
		if recv.Size > 1100000 {
			advice = ": continue with --resume here and --offset 1100000 at the sender"
		}
		recv.Path = filepath.Join(t.TempDir(), "target")
		m := moveFile(t, a, b, control.SendFile{Path: file}, recv)
		require.ErrorIs(t, m.recvErr, control.ErrMismatch)
		assert.ErrorContains(t, m.recvErr, want)
		assert.ErrorContains(t, m.recvErr, advice)
		assert.ErrorContains(t, m.sendErr, "the receiver has all of it")
		assert.ErrorIs(t, m.sendErr, control.ErrReset)
		assert.FileExists(t, recv.Path+".part")
		assert.NoFileExists(t, recv.Path)
	}
}

// sendSlowly makes a send a file to a receiver that reads only after deal has returned.
func sendSlowly(t *testing.T, deal func(path string)) (control.Transfer, error) {
	t.Helper()
	a, b := twoNodes(t)
	path := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	require.NoError(t, os.Truncate(path, 64<<20)) // far more than all buffers
	l, err := b.Node.TCP.Listen(netip.MustParseAddrPort("10.0.0.2:9000"), 0)
	require.NoError(t, err)
	go func() {
		c, err := l.AcceptTCP()
		if !assert.NoError(t, err) {
			return
		}
		deal(path)
		_, _ = io.Copy(io.Discard, c) // fails if the sender has reset the connection
		_ = c.Close()
	}()
	answer, err := control.Ask(t.Context(), a, control.SendFile{
		Path: path, Addr: netip.MustParseAddr("10.0.0.2"), Port: 9000,
	})
	require.NoError(t, l.Close())
	return answer, err
}

func TestFileChangesDuringTransfer(t *testing.T) {
	_, err := sendSlowly(t, func(path string) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if assert.NoError(t, err) {
			_, err = f.WriteString("something else")
			assert.NoError(t, err)
			assert.NoError(t, f.Close())
		}
	})
	require.ErrorIs(t, err, control.ErrChanged)
	require.ErrorContains(t, err, "another program wrote to it")
	assert.ErrorContains(t, err, " acknowledged: send it again)")
}

// If a file shrinks during a transfer, the error gives its size now and says to send it again. It
// does not suggest to resume.
func TestFileShrinksDuringTransfer(t *testing.T) {
	_, err := sendSlowly(t, func(path string) { assert.NoError(t, os.Truncate(path, 1000)) })
	require.ErrorIs(t, err, control.ErrChanged)
	require.ErrorContains(t, err, ": 67108864 bytes at the start, 1000 now (")
	assert.ErrorContains(t, err, " acknowledged: send it again)")
}

// A file that is deleted during a transfer is sent completely: its data exists until the sender
// closes it.
func TestFileIsDeletedDuringTransfer(t *testing.T) {
	answer, err := sendSlowly(t, func(path string) { assert.NoError(t, os.Remove(path)) })
	require.NoError(t, err)
	assert.Equal(t, int64(64<<20), answer.Bytes)
	assert.Equal(t, "the file was deleted during the transfer, but sent completely", answer.Note)
	answer, err = sendSlowly(t, func(path string) {
		assert.NoError(t, os.WriteFile(path+".new", []byte("new"), 0o644))
		assert.NoError(t, os.Rename(path+".new", path))
	})
	require.NoError(t, err)
	assert.Contains(t, answer.Note, "the old one was sent")
}

// A transfer also reports its progress as an event.
func TestTransferProgressEvents(t *testing.T) {
	a, b := twoNodes(t)
	file, data, _ := someFile(t)
	events := make(chan control.Transferring, 1000)
	defer a.Node.Watchers.Watch(func(e control.Event) {
		if p, ok := e.(control.Transferring); ok {
			events <- p
		}
	})()
	m := moveFile(t, a, b, control.SendFile{Path: file}, control.RecvFile{
		Path: filepath.Join(t.TempDir(), "target"),
	})
	require.NoError(t, m.sendErr)
	for {
		e := <-events
		assert.Equal(t, file, e.Path)
		assert.True(t, e.Sent)
		assert.Equal(t, int64(len(data)), e.Progress.Total)
		if e.Progress.Bytes == int64(len(data)) {
			break
		}
	}
}
