package services_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
)

// RFC 862: the server echoes data, over TCP and over UDP.
func TestEcho(t *testing.T) {
	a, b := twoNodes(t)
	sock := testenv.Ask(t, b, control.ServeSmall{Service: control.ServiceEcho})
	assert.Equal(t, uint16(7), sock.Local.Port())
	for _, udp := range []bool{false, true} {
		var replies []control.EchoReply
		result := testenv.Ask(t, a, control.Echo{
			Addr: operatortest.Second, UDP: udp, Count: 5, Size: 5000, Interval: time.Millisecond, Timeout: time.Minute,
			Each: func(r control.EchoReply) { replies = append(replies, r) },
		})
		assert.Equal(t, 5, result.Received)
		assert.Equal(t, 5, result.Sent)
		assert.Zero(t, result.Wrong)
		assert.LessOrEqual(t, result.Min, result.Avg)
		assert.LessOrEqual(t, result.Avg, result.Max)
		require.Len(t, replies, 5)
		assert.Equal(t, 5000, replies[4].Size)
		assert.Empty(t, replies[4].Problem)
	}
	// A canceled request returns its result so far.
	ctx, cancel := context.WithCancel(t.Context())
	result, err := control.Ask(ctx, a, control.Echo{
		Addr: operatortest.Second, Interval: time.Hour, Timeout: time.Minute, Each: func(control.EchoReply) { cancel() },
	})
	require.NoError(t, err)
	assert.Equal(t, 1, result.Received)

	testenv.Ask(t, b, control.Close{SID: sock.SID})
	_, err = control.Ask(t.Context(), a, control.Echo{Addr: operatortest.Second, Count: 1})
	require.ErrorIs(t, err, control.ErrRefused)
	require.Eventually(t, func() bool { // closing the listener also closes the UDP port
		c, err := b.Node.Packets.Listen(netip.MustParseAddrPort("0.0.0.0:7"))
		return err == nil && c.Close() == nil
	}, time.Minute, time.Millisecond)
	operatortest.NoSockets(t, b)
	_, err = control.Ask(t.Context(), a, control.Echo{Addr: operatortest.Second, Size: 3})
	assert.ErrorIs(t, err, control.ErrUsage)
	_, err = control.Ask(t.Context(), b, control.ServeSmall{Service: "daytime"})
	assert.ErrorIs(t, err, control.ErrUsage)
}

// The server sends a wrong answer, or no answer.
func TestWrongEchoes(t *testing.T) {
	a, b := twoNodes(t)
	c, err := b.Node.Packets.Listen(netip.MustParseAddrPort("0.0.0.0:7"))
	require.NoError(t, err)
	go func() {
		buf := make([]byte, 100)
		for {
			k, from, err := c.ReadFromAddrPort(buf)
			if err != nil {
				return
			}
			if seq := buf[3]; seq == 1 { // the second message is not answered
				buf[k-1] = '!'
				_, _ = c.WriteToAddrPort(buf[:k], from)
			}
		}
	}()
	var problems []string
	result := testenv.Ask(t, a, control.Echo{
		Addr: operatortest.Second, UDP: true, Count: 2, Interval: time.Millisecond, Timeout: 50 * time.Millisecond,
		Each: func(r control.EchoReply) { problems = append(problems, r.Problem) },
	})
	assert.Equal(t, 2, result.Sent)
	assert.Zero(t, result.Received)
	require.Len(t, problems, 2)
	assert.Equal(t, "no answer", problems[1])
	require.NoError(t, c.Close())
	result = testenv.Ask(t, a, control.Echo{Addr: operatortest.Second, UDP: true, Count: 1})
	assert.Zero(t, result.Received)

	l, err := b.Node.TCP.Listen(netip.MustParseAddrPort("0.0.0.0:7"), 0)
	require.NoError(t, err)
	_, err = control.Ask(t.Context(), a, control.Echo{Addr: operatortest.Second, Count: 1, Timeout: 50 * time.Millisecond})
	require.ErrorIs(t, err, control.ErrTimeout)
	require.ErrorContains(t, err, "no answer for 50ms")
	require.NoError(t, l.Close())
	_, err = control.Ask(t.Context(), a, control.Echo{Addr: operatortest.Second, Count: 1})
	require.EqualError(t, err, "echo 10.0.0.2:7: connection refused")
}

// RFC 863 and RFC 864 define the discard and chargen servers.
func TestDiscardAndChargen(t *testing.T) {
	a, b := twoNodes(t)
	for _, s := range []control.SmallService{control.ServiceDiscard, control.ServiceChargen} {
		testenv.Ask(t, b, control.ServeSmall{Service: s})
	}
	_, err := control.Ask(t.Context(), b, control.ServeSmall{Service: control.ServiceDiscard})
	require.ErrorIs(t, err, control.ErrPortInUse)
	c, err := a.Node.TCP.Dial(t.Context(), netip.MustParseAddrPort("10.0.0.2:9"))
	require.NoError(t, err)
	_, err = c.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, c.CloseWrite())
	n, err := io.Copy(io.Discard, c)
	require.NoError(t, err, "it reads to the end, and closes")
	assert.Zero(t, n)
	require.NoError(t, c.Close())

	c, err = a.Node.TCP.Dial(t.Context(), netip.MustParseAddrPort("10.0.0.2:19"))
	require.NoError(t, err)
	text := make([]byte, 3*74)
	_, err = io.ReadFull(c, text)
	require.NoError(t, err)
	lines := strings.Split(string(text), "\r\n")
	require.Len(t, lines, 4)
	assert.True(t, strings.HasPrefix(lines[0], ` !"#$%&'()*`), lines[0])
	assert.Len(t, lines[0], 72)
	assert.Equal(t, lines[0][1:], lines[1][:71], "each begins a character further on")
	c.Abort()

	u, err := a.Node.Packets.Dial(netip.MustParseAddrPort("10.0.0.2:19"))
	require.NoError(t, err)
	_, err = u.Write([]byte("?"))
	require.NoError(t, err)
	k, err := u.Read(make([]byte, 2000))
	require.NoError(t, err)
	assert.LessOrEqual(t, k, 512, "RFC 864")
	require.NoError(t, u.Close())
	// Datagrams from the port of such a service get no answer, because two services would answer
	// each other for ever.
	u, err = a.Node.Packets.DialFrom(netip.MustParseAddrPort("0.0.0.0:7"), netip.MustParseAddrPort("10.0.0.2:19"))
	require.NoError(t, err)
	_, err = u.Write([]byte("?"))
	require.NoError(t, err)
	require.NoError(t, u.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err = u.Read(make([]byte, 2000))
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, u.Close())
	operatortest.NoSockets(t, a)
}

// RFC 9110 §14.1.2 defines ranges. A download resumes after an interruption.
func TestResumedDownload(t *testing.T) {
	a, b := twoNodes(t)
	file, data, digest := someFile(t)
	testenv.Ask(t, b, control.Serve{Port: 80, Dir: filepath.Dir(file)})
	page := fetchPage(t, a, control.Fetch{URL: "10.0.0.2/file", Range: "10-19"})
	assert.Equal(t, http.StatusPartialContent, page.Code)
	assert.Equal(t, "tidepools ", string(page.Body))
	target := filepath.Join(t.TempDir(), "target")
	for name, there := range map[string]int{"nothing": 0, "some": 123_456, "all": len(data)} {
		require.NoError(t, os.WriteFile(target+".part", data[:there], 0o644))
		var last control.Progress
		page = fetchPage(t, a, control.Fetch{
			URL: "10.0.0.2/file", Path: target, Resume: true, Progress: func(p control.Progress) { last = p },
		})
		assert.Equal(t, digest, page.SHA256, name)
		assert.Equal(t, int64(there), page.Offset, name)
		assert.Equal(t, int64(len(data)-there), page.Bytes, name)
		assert.Equal(t, int64(len(data)-there), last.Bytes)
		got, err := os.ReadFile(target)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(data, got))
		assert.NoFileExists(t, target+".part")
		require.NoError(t, os.Remove(target))
	}
	page = fetchPage(t, a, control.Fetch{URL: "10.0.0.2/none", Path: target})
	assert.Equal(t, http.StatusNotFound, page.Code)
	assert.NoFileExists(t, target, "what the server says instead is not the file")
	assert.NoFileExists(t, target+".part")
	_, err := control.Ask(t.Context(), a, control.Fetch{URL: "10.0.0.2/file", Resume: true})
	assert.ErrorIs(t, err, control.ErrUsage)
}
