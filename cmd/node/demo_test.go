package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

func TestDemoRefusesInvalidFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--bytes -1", "--bytes -1: must be 0 or more"},
		{"--bytes many", `"many"`},
		{"--loss 100", "--loss 100: must be a percentage"},
		{"--loss -2", "--loss -2: must be a percentage"},
		{"--loss NaN", "--loss NaN: must be a percentage"},
		{"--direct --loss 2", "which has no router"},
		{"--pcap-snaplen -1", "--pcap-snaplen -1: must be 0 to 65535"},
		{"--pcap-snaplen 70000", "must be 0 to 65535"},
		{"--out=", "--out is empty"},
		{"--family 5", `--family "5": must be 4 or 6`},
		{"--cc renoo", `--cc "renoo" is not a congestion control (did you mean reno?): must be all or one of bbr`},
		{"--what", "unknown flag: --what"},
		{"now", `unknown command "now"`},
	} {
		t.Run(c.args, func(t *testing.T) {
			root := rootCommand()
			root.SetArgs(append([]string{"demo"}, strings.Fields(c.args)...))
			err := root.ExecuteContext(t.Context())
			require.ErrorIs(t, err, control.ErrUsage)
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "\n", "one line")
		})
	}
}

func TestDemoExplainsAnUnusableFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	root := rootCommand()
	root.SetArgs([]string{"demo", "--out", file, "--bytes", "1"})
	err := root.ExecuteContext(t.Context())
	require.ErrorContains(t, err, file)
	assert.NotContains(t, err.Error(), "\n")
}

func TestTheDemosNetworksAreValid(t *testing.T) {
	ports := []int{5001, 5002, 5003, 5004}
	for _, o := range []demoOptions{
		{family: "4"}, {family: "4", direct: true}, {family: "6"}, {family: "6", direct: true},
	} {
		d := demo{demoOptions: o}
		files, name := d.network(ports), fmt.Sprintf("%+v", o)
		owner := map[string]string{} // nodes by the UDP addresses that they bind
		addrs := map[string]string{} // UDP addresses of the interfaces by virtual address
		var configs []*lnx.Config
		for node, text := range files {
			c, err := lnx.Parse(node+".lnx", []byte(text))
			require.NoError(t, err, name)
			configs = append(configs, c)
			for _, i := range c.Interfaces {
				assert.Empty(t, owner[i.UDP.String()], "%s: %v is bound twice", name, i.UDP)
				owner[i.UDP.String()] = node
				addrs[i.Addrs()[0].Addr().String()] = i.UDP.String()
			}
		}
		for _, c := range configs {
			for _, n := range c.Neighbors {
				assert.Equal(t, addrs[n.Addr.String()], n.UDP.String(), "%s: neighbor %v", name, n.Addr)
			}
		}
		assert.Contains(t, addrs, d.addrs()[0], name)
		assert.Contains(t, files["C"], "interface if0 "+d.addrs()[len(addrs)-1], name)
	}
}

func TestGenerateIsTheSameForTheSameSeed(t *testing.T) {
	digest := func(bytes int64, seed uint64) string {
		d := demo{demoOptions: demoOptions{bytes: bytes, seed: seed}, dir: t.TempDir()}
		made, err := d.generate(t.Context())
		require.NoError(t, err)
		read, err := digestOf(d.path(demoSent))
		require.NoError(t, err)
		assert.Equal(t, made, read)
		info, err := os.Stat(d.path(demoSent))
		require.NoError(t, err)
		assert.Equal(t, bytes, info.Size())
		return made
	}
	first := digest(2_500_000, 1)
	assert.Equal(t, first, digest(2_500_000, 1))
	assert.NotEqual(t, first, digest(2_500_000, 2))
	assert.Equal(t, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		digest(0, 1), "SHA-256 of nothing")
}

func TestGenerateEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := demo{demoOptions: demoOptions{bytes: 1 << 40}, dir: t.TempDir()}
	_, err := d.generate(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestClearLeavesOtherFilesAlone(t *testing.T) {
	d := demo{dir: t.TempDir()}
	for _, name := range []string{"mine.txt", demoSent, demoPart, "B.pcapng", "figure.png"} {
		require.NoError(t, os.WriteFile(d.path(name), []byte("x"), 0o600))
	}
	d.clear()
	entries, err := os.ReadDir(d.dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.Equal(t, "mine.txt", entries[0].Name())
}

func TestLossBound(t *testing.T) {
	// The expected value is 1.31 / sqrt(0.02) * 1360 B / 1 ms.
	assert.InDelta(t, 12.598, lossBound(2, 1360, time.Millisecond), 0.001)
	assert.InDelta(t, 6.299, lossBound(2, 1360, 2*time.Millisecond), 0.001)
	assert.Zero(t, lossBound(0, 1360, time.Millisecond), "no loss, no bound")
	assert.Zero(t, lossBound(2, 1360, 0))
}

func TestSummarize(t *testing.T) {
	d := demo{demoOptions: demoOptions{bytes: 1000, loss: 2, seed: 7, out: "there"}}
	r := d.summarize(demoMoved{
		sent: control.Transfer{
			Bytes: 1000, Seconds: 2, MBPerS: 30, SHA256: "aa", Retransmits: 5, Timeouts: 1,
			TailProbes: 2, WindowProbes: 3, RTT: time.Millisecond, MinRTT: 20 * time.Microsecond, MSS: 1360,
		},
		received: control.Transfer{Bytes: 999, SHA256: "bb"},
		router: []control.Interface{
			{In: control.Counters{Packets: 70, Drops: []control.Drop{{Reason: "ttl exceeded", Packets: 1}}}},
			{
				In:  control.Counters{Packets: 30},
				Out: control.Counters{Packets: 66, Drops: []control.Drop{{Reason: lossy, Packets: 4}}},
			},
		},
	})
	assert.Equal(t, int64(999), r.Bytes, "what arrived")
	assert.Equal(t, "bb", r.SHA256)
	assert.Equal(t, uint64(100), r.RouterPackets)
	assert.Equal(t, uint64(4), r.RouterLost)
	assert.Equal(t, uint64(1), r.RouterDropped)
	assert.InDelta(t, 12.598, r.BoundMBPerS, 0.001)
	assert.InDelta(t, 30/12.598, r.OfBound, 0.001)
	assert.Equal(t, uint64(1), r.RTOs)
	assert.InDelta(t, 0.02, r.MinRTTms, 1e-9)
}

func TestCompareWantsEveryDigestTheSame(t *testing.T) {
	d := demo{demoOptions: demoOptions{bytes: 4}, dir: t.TempDir()}
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(d.path(name), []byte(text), 0o600))
	}
	write(demoSent, "tide")
	write(demoReceived, "tide")
	sum, err := digestOf(d.path(demoSent))
	require.NoError(t, err)
	whole := demoMoved{sent: control.Transfer{SHA256: sum}, received: control.Transfer{SHA256: sum}}
	match := func(bytes int64, made string, moved demoMoved) bool {
		r := demoResult{Bytes: bytes}
		require.NoError(t, d.compare(&r, made, moved))
		return r.Match
	}
	assert.True(t, match(4, sum, whole))
	assert.False(t, match(3, sum, whole))
	assert.False(t, match(4, "other", whole))
	assert.False(t, match(4, sum, demoMoved{sent: whole.sent}))
	assert.False(t, match(4, sum, demoMoved{received: whole.received}))
	write(demoReceived, "tied")
	assert.False(t, match(4, sum, whole), "the file on the disk differs")
	require.NoError(t, os.Remove(d.path(demoReceived)))
	assert.Error(t, d.compare(&demoResult{}, sum, whole))
}

func TestTheResultIsComparedWithTheDocuments(t *testing.T) {
	row := func(r demoResult) string {
		for line := range strings.Lines(r.comparison()) {
			if strings.HasPrefix(line, "  here") {
				return strings.Join(strings.Fields(line), " ")
			}
		}
		return ""
	}
	text := (&demoResult{LossPercent: 2, MBPerS: 57.33}).comparison()
	assert.Contains(t, text, "5.20-8.86", "document 001's 4.96 to 8.45 MiB/s")
	assert.Equal(t, "here 57.3", row(demoResult{LossPercent: 2, MBPerS: 57.33}))
	assert.Equal(t, "here, at 0.5 % 57.3", row(demoResult{LossPercent: 0.5, MBPerS: 57.33}))

	var b bytes.Buffer
	(&demoResult{Bytes: 92_339_236, Match: true, Routed: true}).print(&b)
	assert.Contains(t, b.String(), "92,339,236 bytes")
	assert.NotContains(t, b.String(), "bound", "no bound without loss")
	b.Reset()
	(&demoResult{}).print(&b)
	assert.Contains(t, b.String(), "DIFFERENT")
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", 92_339_236: "92,339,236", 5_000_000_000: "5,000,000,000",
	} {
		assert.Equal(t, want, grouped(n))
	}
}

func TestStderrLinesAreWhole(t *testing.T) {
	var got []string
	l := lineWriter{tell: func(line []byte) error {
		got = append(got, string(line))
		return nil
	}}
	for _, piece := range []string{"on", "e\ntwo\n\nth", "", "ree", "\nrest"} {
		n, err := l.Write([]byte(piece))
		require.NoError(t, err)
		assert.Equal(t, len(piece), n)
	}
	assert.Equal(t, []string{"one", "two", "", "three"}, got)
	require.NoError(t, l.end())
	assert.Equal(t, "rest", got[len(got)-1], "the last line has no end")
}

func TestExitErrorHasTheLastLines(t *testing.T) {
	c := child{name: "A"}
	require.EqualError(t, c.exitError(), "node A stopped too early")
	c.err = errors.New("exit status 2")
	require.EqualError(t, c.exitError(), "node A: exit status 2")
	for _, line := range []string{"a", "b", " ", "c", "d", "e "} {
		require.NoError(t, c.keepStderrLine([]byte(line)))
	}
	require.EqualError(t, c.exitError(), "node A: exit status 2: b | c | d | e")
}

// An end that knows only of a reset waits for the reason that the other end reports.
func TestCauseOfPrefersTheReason(t *testing.T) {
	full := errors.New("no space left on device")
	other := make(chan ending, 1)
	require.NoError(t, causeOf(nil, other))
	require.ErrorIs(t, causeOf(full, other), full)
	other <- ending{err: full}
	require.ErrorIs(t, causeOf(control.ErrReset, other), full)
	other <- ending{}
	require.ErrorIs(t, causeOf(control.ErrReset, other), control.ErrReset)
}
