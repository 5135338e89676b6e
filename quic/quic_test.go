package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
	"github.com/tidepool-net/tidepool/internal/lab/emulation"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// TestMain runs the test binary as a process of an experiment if asEnd is set: as the middle, or
// without arguments as an end of a flow.
func TestMain(m *testing.M) {
	var err error
	switch {
	case os.Getenv(asEnd) != "" && len(os.Args) == 1:
		err = serve()
	case os.Getenv(asEnd) != "" && os.Args[1] == "middle":
		err = emulation.ServeMiddle(os.Stdin, os.Stdout)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

const asEnd = "NODE_QUIC_TEST_END"

// limit is the timeout of a transfer.
const limit = time.Minute

// nodes returns two nodes on a pipe that loses a tenth of the server's packets, and duplicates and
// reorders some.
func nodes(t *testing.T) (server, client *tidepool.Node) {
	t.Helper()
	x, y := tidepool.Pipe(0)
	open := func(addr string, link *tidepool.PipeEnd, bad tidepool.Impairments) *tidepool.Node {
		n, err := tidepool.Open(tidepool.Config{Seed: 7, Interfaces: []tidepool.Interface{
			{Addr: netip.MustParsePrefix(addr), Link: link, Impair: bad},
		}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, n.Close()) })
		return n
	}
	bad := tidepool.Impairments{Loss: .1, Duplicate: .02, Reorder: .02}
	return open("10.0.0.1/24", x, bad), open("10.0.0.2/24", y, tidepool.Impairments{Loss: .02})
}

func listen(t *testing.T, n *tidepool.Node, on string) net.PacketConn {
	t.Helper()
	pc, err := n.ListenPacket("udp", on)
	require.NoError(t, err)
	t.Cleanup(func() { _ = pc.Close() })
	return pc
}

func setup(t *testing.T) { t.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true") }

// Objects arrive intact over a link that loses a tenth of the server's packets.
func TestObjectsOverALossyLink(t *testing.T) {
	setup(t)
	server, client := nodes(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	random := rand.New(rand.NewPCG(1, 2))
	want := make([][]byte, 4)
	for i, n := range []int{1_000_000, 10_000, 0, 300_000} {
		want[i] = make([]byte, n)
		for k := range want[i] {
			want[i][k] = byte(random.Uint32())
		}
	}
	cfg, err := config(1400)
	require.NoError(t, err)
	served := make(chan error, 1)
	ready := make(chan struct{})
	at := listen(t, server, ":443")
	go func() {
		stats, err := serveObjects(ctx, at, cfg, want, func() { close(ready) })
		if err == nil {
			assert.Positive(t, stats.PacketsLost)
			assert.Greater(t, stats.PacketsSent, uint64(1_310_000/1400))
		}
		served <- err
	}()
	<-ready
	got := make([][]byte, len(want))
	var mu sync.Mutex
	to := net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.1:443"))
	err = fetchObjects(ctx, listen(t, client, ":0"), cfg, to, []int{3, 0, 2, 1},
		func(i, from int, p []byte) bool {
			mu.Lock()
			defer mu.Unlock()
			require.Len(t, got[i], from)
			got[i] = append(got[i], p...)
			return true
		})
	require.NoError(t, err)
	require.NoError(t, <-served)
	for i := range want {
		require.True(t, bytes.Equal(want[i], got[i]), "object %d", i)
	}
}

// QUIC sends a close once. A server whose client has every object does not need it.
func TestCloseIsLost(t *testing.T) {
	setup(t)
	server, client := nodes(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cfg, err := config(1400)
	require.NoError(t, err)
	served := make(chan error, 1)
	ready := make(chan struct{})
	at := listen(t, server, ":443")
	go func() {
		_, err := serveObjects(ctx, at, cfg, [][]byte{{1}}, func() { close(ready) })
		served <- err
	}()
	<-ready
	pc := listen(t, client, ":0")
	tr := &quic.Transport{Conn: pc}
	defer tr.Close()
	trust := &tls.Config{NextProtos: []string{protocol}}
	trust.InsecureSkipVerify = true //nolint:gosec // see credentials
	to := net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.1:443"))
	c, err := tr.Dial(ctx, to, trust, cfg)
	require.NoError(t, err)
	s, err := request(ctx, c, doneNumber)
	require.NoError(t, err)
	_, err = io.ReadAll(s)
	require.NoError(t, err)
	require.NoError(t, pc.Close()) // nothing is sent after this
	require.NoError(t, <-served)
}

// A missing object, a missing server and an MTU that is too small are errors.
func TestFailingTransfers(t *testing.T) {
	setup(t)
	server, client := nodes(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	_, err := config(1200)
	require.ErrorContains(t, err, "at least 1228", "RFC 9000 §14: packets of 1200 bytes")
	cfg, err := config(9000)
	require.NoError(t, err)
	at := listen(t, server, ":443")
	ready := make(chan struct{})
	served := make(chan error, 1)
	go func() {
		_, err := serveObjects(ctx, at, cfg, [][]byte{{1}}, func() { close(ready) })
		served <- err
	}()
	<-ready
	to := net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.1:443"))
	none := func(int, int, []byte) bool { return true }
	err = fetchObjects(ctx, listen(t, client, ":0"), cfg, to, []int{7}, none)
	require.Error(t, err)
	require.NoError(t, <-served, "the client closed the connection cleanly")
	short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	defer stop()
	err = fetchObjects(short, listen(t, client, ":0"), cfg, to, []int{0}, none)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// A client whose context ends does not wait for a silent server.
func TestClientTimesOut(t *testing.T) {
	setup(t)
	server, client := nodes(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	cfg, err := config(1500)
	require.NoError(t, err)
	at := listen(t, server, ":443")
	ready, served := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(served)
		_, _ = serveObjects(ctx, at, cfg, [][]byte{make([]byte, 50_000_000)}, func() { close(ready) })
	}()
	<-ready
	to := net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.1:443"))
	var once sync.Once
	err = fetchObjects(ctx, listen(t, client, ":0"), cfg, to, []int{0}, func(int, int, []byte) bool {
		once.Do(func() {
			assert.NoError(t, server.SetUp("if0", false))
			cancel(over)
		})
		return true
	})
	require.ErrorIs(t, err, over)
	<-served
}

const experiment = `name: quic
duration: 30s
path:
  down: {delay: 2ms, rate: 50Mbit/s, loss: 3%}
  up: {delay: 2ms}
flows:
  - {protocol: quic, objects: {pairs: 2, small: 7400, large: 200kB}}
`

// In real time, the arm transfers the objects and reports when each is complete.
func TestArmInRealTime(t *testing.T) {
	t.Setenv(asEnd, "yes")
	f, err := plan.Parse("test.yaml", []byte(experiment))
	require.NoError(t, err)
	cells, err := f.Cells()
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	o := &emulation.Options{
		Middle: []string{self, "middle"}, Programs: map[plan.Protocol]string{plan.QUIC: self},
		Plan: emulation.Plan{Document: string(f.Resolved())},
	}
	require.Nil(t, emulation.CheckReal(&cells[0].Experiment, o.Programs))
	trial, record, err := o.Play(t.Context(), &cells[0], 0, true)
	require.NoError(t, err)
	require.True(t, trial.Finished, trial.Note)
	v := trial.Flows[0].Values
	assert.InDelta(t, 4, v[result.ObjectsDone], 0)
	assert.Positive(t, v[result.Completion])
	assert.Positive(t, v[result.SmallMean])
	assert.Greater(t, v[result.LargeMean], 0.)
	assert.Greater(t, v[result.ServerSent], 200.)
	require.Len(t, record.Objects, 4)
	for _, row := range record.Objects {
		assert.True(t, row.Done, row.Name)
		assert.Greater(t, row.End, row.Start)
	}
}
