package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The README's first command, with a small file.
func TestDemo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := node(t, "", "demo", "--json", "--bytes", "3000000", "--loss", "5", "--out", dir)
	require.Zero(t, r.code, "%s%s", r.out, r.err)
	var result struct {
		Bytes       int64   `json:"bytes"`
		LossPercent float64 `json:"loss_percent"`
		Seconds     float64 `json:"seconds"`
		MBPerS      float64 `json:"mb_per_s"`
		SHA256Match bool    `json:"sha256_match"`
	}
	require.NoError(t, json.Unmarshal([]byte(r.out), &result), "one document on stdout: %s", r.out)
	assert.EqualValues(t, 3_000_000, result.Bytes)
	assert.InDelta(t, 5, result.LossPercent, 0)
	assert.True(t, result.SHA256Match)
	assert.Positive(t, result.Seconds)
	assert.InEpsilon(t, 3/result.Seconds, result.MBPerS, 0.01)

	t.Log("# the folder that it leaves")
	captures, err := filepath.Glob(filepath.Join(dir, "*.pcapng"))
	require.NoError(t, err)
	assert.NotEmpty(t, captures)
	for _, ext := range []string{"*.svg", "*.png"} {
		plots, err := filepath.Glob(filepath.Join(dir, ext))
		require.NoError(t, err)
		assert.NotEmpty(t, plots, ext)
	}
}

// A capture holds the packets that crossed the node, as IP packets that other programs can read.
func TestPcap(t *testing.T) {
	t.Parallel()
	net := CopyNetwork(t, "nets", "a-b-c")
	file := filepath.Join(t.TempDir(), "b.pcapng")
	a, b, c := net.Start("A"), net.Start("B", "--pcap", file), net.Start("C")
	awaitRoutes(t, a, c)
	startTransfer(t, a, c, 100_000, 9000).done(Soon)
	b.MustDo("lossyforward 100")
	fails(t, a, Soon, "ping -c 1 -i 0.01 %s", c.Addr())
	out := b.MustDo("pcap stop")
	assert.True(t, has(out, "packets in "+file), "%q", out)
	require.Zero(t, b.Quit(Soon))

	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	r, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
	require.NoError(t, err)
	var tcp, icmp int
	for {
		data, _, err := r.ReadPacketData()
		if err != nil {
			break
		}
		require.GreaterOrEqual(t, len(data), 20)
		require.EqualValues(t, 4, data[0]>>4, "an IPv4 packet")
		switch data[9] {
		case 6:
			tcp++
		case 1:
			icmp++
		}
	}
	assert.GreaterOrEqual(t, tcp, 2*74, "incoming and outgoing")
	assert.NotZero(t, icmp, "the dropped packet too")
}
