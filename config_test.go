package tidepool_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

// Open and OpenFile reject the same invalid addresses.
func TestOpenAndOpenFileRejectTheSameAddresses(t *testing.T) {
	for _, c := range []struct{ own, neighbor, why string }{
		{"0.0.0.0/24", "", "of 0.0.0.0/8, which no node can use"},
		{"0.1.2.3/24", "", "of 0.0.0.0/8, which no node can use"},
		{"127.0.0.1/8", "", "a loopback address"},
		{"224.0.0.5/24", "", "a multicast address"},
		{"240.0.0.1/24", "", "of 240.0.0.0/4, which no node can use"},
		{"255.255.255.255/32", "", "of 240.0.0.0/4, which no node can use"},
		{"10.0.0.0/24", "", "the address of the subnet 10.0.0.0/24 itself"},
		{"10.0.0.255/24", "", "the broadcast address of 10.0.0.0/24"},
		{"10.0.0.1/0", "", ""},
		{"10.0.0.1/24", "224.0.0.2", "a multicast address"},
		{"10.0.0.1/24", "127.0.0.2", "a loopback address"},
		{"10.0.0.1/24", "10.0.0.0", "the address of the subnet 10.0.0.0/24 itself"},
		{"10.0.0.1/24", "10.0.0.255", "the broadcast address of 10.0.0.0/24"},
		{"10.0.0.1/24", "10.0.1.2", ""},
		{"10.0.0.1/24", "10.0.0.1", ""},
	} {
		face := tidepool.Interface{Addr: prefix(c.own), UDP: "127.0.0.1:9"}
		text := "interface if0 " + c.own + " 127.0.0.1:9\n"
		if c.neighbor != "" {
			face.Neighbors = []tidepool.Neighbor{{Addr: addr(c.neighbor), UDP: "127.0.0.1:10"}}
			text += "neighbor " + c.neighbor + " at 127.0.0.1:10 via if0\n"
		}
		_, err := tidepool.Open(tidepool.Config{Interfaces: []tidepool.Interface{face}})
		require.ErrorContains(t, err, "tidepool: bad configuration: interface if0: ", c)
		assert.ErrorContains(t, err, c.why)
		file := filepath.Join(t.TempDir(), "x.lnx")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err = tidepool.OpenFile(file)
		require.ErrorContains(t, err, file, c)
		assert.ErrorContains(t, err, c.why)
	}
	for kernel, why := range map[string]string{
		"10.0.0.1": "the interface itself", "10.0.0.255": "the broadcast address",
		"10.9.0.1": "not in the link's prefix", "::1": "of a family",
	} {
		_, err := tidepool.Open(tidepool.Config{Interfaces: []tidepool.Interface{
			{Addr: prefix("10.0.0.1/24"), TUN: "tide9", Kernel: addr(kernel)},
		}})
		require.ErrorContains(t, err, "interface if0: Kernel: neighbor "+kernel+" is "+why)
	}
}

// Info shows the negotiated options, which are those that Config.TCP enables.
func TestConfigOfTCPOptions(t *testing.T) {
	type negotiated struct {
		Strategy                     string
		SACK, Timestamps, ECN, Plain bool
		Scaled                       bool
	}
	for name, row := range map[string]struct {
		tcp  tidepool.TCP
		want negotiated
	}{
		"default":       {tidepool.TCP{}, negotiated{"rack", true, true, false, false, true}},
		"no SACK":       {tidepool.TCP{NoSACK: true}, negotiated{"newreno", false, true, false, false, true}},
		"no timestamps": {tidepool.TCP{NoTimestamps: true}, negotiated{"rack", true, false, false, false, true}},
		"no scale":      {tidepool.TCP{NoWindowScale: true}, negotiated{"rack", true, true, false, false, false}},
		"no options":    {tidepool.TCP{NoOptions: true}, negotiated{"newreno", false, false, false, true, false}},
		"ECN":           {tidepool.TCP{ECN: "on"}, negotiated{"rack", true, true, true, false, true}},
		"go-back-N":     {tidepool.TCP{Recovery: "gbn"}, negotiated{"gbn", false, true, false, false, true}},
	} {
		a, b := pair(t, tidepool.Config{TCP: row.tcp})
		client, _ := dial(t, a, b, "10.0.0.2:80")
		i, err := client.Info()
		require.NoError(t, err)
		assert.Equal(t, row.want, negotiated{
			i.Strategy, i.SACK, i.Timestamps, i.ECN, i.Plain, i.SndWScale >= 0 && i.RcvWScale >= 0,
		}, name)
	}
}

// The README's program is part of one that is compiled and run.
func TestReadmeShowsAnExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(readme), "```go\n")
	require.True(t, ok)
	snippet, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	examples, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	flush := strings.ReplaceAll(string(examples), "\n\t", "\n")
	assert.Contains(t, flush, snippet)
}

// BenchmarkPipe transfers data over one connection between two nodes in a process.
func BenchmarkPipe(b *testing.B) {
	server, client := pair(b, tidepool.Config{})
	out, in := dial(b, client, server, "10.0.0.1:80")
	chunk := make([]byte, 64<<10)
	b.SetBytes(int64(len(chunk)))
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := io.Copy(io.Discard, in)
		assert.NoError(b, err)
	})
	for b.Loop() {
		_, err := out.Write(chunk)
		require.NoError(b, err)
	}
	require.NoError(b, out.CloseWrite())
	wg.Wait()
}

// BenchmarkRoundTrip sends one byte and reads one byte back.
func BenchmarkRoundTrip(b *testing.B) {
	server, client := pair(b, tidepool.Config{})
	one, two := dial(b, client, server, "10.0.0.1:80")
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(two, two) })
	buf := make([]byte, 1)
	for b.Loop() {
		_, err := one.Write(buf)
		require.NoError(b, err)
		_, err = io.ReadFull(one, buf)
		require.NoError(b, err)
	}
	require.NoError(b, one.CloseWrite())
	wg.Wait()
}

// Open closes the links of all interfaces if one is wrong, but none that another node uses.
func TestOpenClosesTheLinksOfAWrongConfig(t *testing.T) {
	used, peer := tidepool.Pipe(0)
	open(t, host(tidepool.Config{}, "10.0.0.1/24", "", used))
	for wrong := range 3 {
		faces := make([]tidepool.Interface, 3)
		far := make([]*tidepool.PipeEnd, len(faces))
		for i := range faces {
			faces[i].Addr = prefix("10.0." + strconv.Itoa(i) + ".1/24")
			faces[i].Link, far[i] = tidepool.Pipe(0)
		}
		faces[wrong].MTU = 1
		faces = append(faces, tidepool.Interface{Addr: prefix("10.0.9.1/24"), Link: used})
		_, err := tidepool.Open(tidepool.Config{Interfaces: faces})
		require.ErrorContains(t, err, "MTU 1")
		for i, end := range far {
			_, err = end.Write([]byte{1})
			require.ErrorIs(t, err, net.ErrClosed, "interface %d of a Config whose %d is wrong", i, wrong)
		}
	}
	_, err := peer.Write([]byte{1})
	require.NoError(t, err)
}
