package iperf_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/iperf"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// twoNodes starts the nodes 10.0.0.1 and 10.0.0.2.
func twoNodes(t *testing.T) (a, b *operator.Node) {
	t.Helper()
	return operatortest.Two(t, node.Config{})
}

// served starts a server in the background on a node. It returns a channel of the tests that the
// server reports.
func served(t *testing.T, n *operator.Node) chan control.PerfEnded {
	t.Helper()
	ended := make(chan control.PerfEnded, 10)
	stop := n.Node.Watchers.Watch(func(e control.Event) {
		if p, ok := e.(control.PerfEnded); ok {
			ended <- p
		}
	})
	t.Cleanup(stop)
	served := testenv.Ask(t, n, control.PerfServe{Background: true})
	assert.Equal(t, uint16(control.PerfPort), served.Local.Port())
	return ended
}

func TestPerfBetweenNodes(t *testing.T) {
	const some = 2 << 20
	tests := map[string]control.Perf{
		"TCP":          {Bytes: some},
		"TCP, reverse": {Bytes: some, Reverse: true},
		"TCP, three":   {Bytes: some, Parallel: 3},
		"TCP, bidir":   {Bytes: some, Bidir: true},
		"TCP, options": {
			Bytes: some, Window: 1 << 18, MSS: 600, NoDelay: true, TOS: 16,
			Congestion: "reno",
		},
		"TCP, blocks": {Blocks: 8, Rate: 80_000_000, Burst: 4},
		"UDP":         {Proto: control.PerfUDP, Bytes: some / 8, Rate: 40_000_000},
		"UDP, reverse": {
			Proto: control.PerfUDP, Bytes: some / 8, Rate: 40_000_000, Reverse: true,
			Parallel: 2,
		},
		"UDP, bidir":     {Proto: control.PerfUDP, Bytes: some / 8, Rate: 40_000_000, Bidir: true},
		"UDP, unlimited": {Proto: control.PerfUDP, Bytes: some, Rate: control.PerfUnlimited},
		"RCP":            {Proto: control.PerfRCP, Bytes: 1 << 18},
		"RCP, reverse":   {Proto: control.PerfRCP, Bytes: 1 << 18, Reverse: true},
		"RDT":            {Proto: control.PerfRDT, Time: time.Second, Parallel: 2},
		"RDT, reverse":   {Proto: control.PerfRDT, Time: time.Second, Reverse: true},
	}
	a, b := twoNodes(t)
	ended := served(t, b)
	for name, req := range tests {
		t.Run(name, func(t *testing.T) {
			req.Addr = operatortest.Second
			starts := 0
			req.Start = func(control.PerfStart) { starts++ }
			report := testenv.Ask(t, a, req)
			assert.Equal(t, 1, starts)
			theirs := <-ended
			require.Empty(t, theirs.Problem)
			checkReports(t, &req, &report, &theirs.Report)
		})
	}
	operatortest.NoSockets(t, a)
	operatortest.NoSockets(t, b)
}

// checkReports compares the reports of both ends of a test.
func checkReports(t *testing.T, req *control.Perf, ours, theirs *control.PerfReport) {
	t.Helper()
	streams := max(1, req.Parallel)
	if req.Bidir {
		streams *= 2
	}
	assert.Len(t, ours.Start.Connected, streams)
	assert.Len(t, ours.End.Streams, streams)
	assert.Equal(t, ours.Start.Cookie, theirs.Start.Cookie)
	assert.Equal(t, ours.Start.TestStart, theirs.Start.TestStart)
	switch {
	case req.Bidir: // one direction may finish before the other starts
		assert.Positive(t, ours.End.SumSent.Bytes+ours.End.SumReceived.Bytes)
	case req.Rate == control.PerfUnlimited: // datagrams at the full rate may all be lost
		assert.Positive(t, ours.End.SumSent.Bytes)
	default:
		assert.Positive(t, ours.End.SumSent.Bytes)
		assert.Positive(t, ours.End.SumReceived.Bytes)
	}
	if !req.Bidir { // with Bidir, each end calls the other end's direction the reverse
		assert.Equal(t, ours.End.SumReceived.Bytes, theirs.End.SumReceived.Bytes, "both reports agree")
		assert.Equal(t, ours.End.SumSent.Bytes, theirs.End.SumSent.Bytes)
	}
	if req.Bytes > 0 && !req.Reverse && !req.Bidir { // either direction may end it
		assert.GreaterOrEqual(t, ours.End.SumSent.Bytes, req.Bytes)
		assert.Less(t, ours.End.SumSent.Bytes, req.Bytes+int64(streams)*(128<<10))
	}
	if req.Bytes > 0 && req.Reverse {
		assert.GreaterOrEqual(t, ours.End.SumReceived.Bytes, req.Bytes)
	}
	first := ours.End.Streams[0]
	switch req.Proto {
	case control.PerfUDP:
		require.NotNil(t, first.UDP)
		if req.Rate != control.PerfUnlimited { // the datagrams may all be lost
			assert.Positive(t, *ours.End.Sum.Packets)
		}
		assert.NotNil(t, first.UDP.JitterMS)
	case control.PerfTCP, "":
		assert.NotNil(t, first.Sender.Retransmits)
		assert.NotEmpty(t, ours.End.SenderTCPCongestion)
		if req.Congestion != "" {
			assert.Equal(t, req.Congestion, ours.End.SenderTCPCongestion)
			assert.Equal(t, req.Congestion, ours.End.ReceiverTCPCongestion)
		}
	default:
		assert.Nil(t, first.Sender.Retransmits)
	}
}

func TestPerfOverIPv6(t *testing.T) {
	a, b := operatortest.TwoIPv6(t, node.Config{})
	ended := served(t, b)
	for name, req := range map[string]control.Perf{
		"TCP": {Bytes: 16 << 20},
		"UDP": {Proto: control.PerfUDP, Bytes: 1 << 18, Rate: 40_000_000, Reverse: true},
		"RCP": {Proto: control.PerfRCP, Bytes: 1 << 18},
		"RDT": {Proto: control.PerfRDT, Time: 500 * time.Millisecond},
	} {
		req.Addr = netip.MustParseAddr("2001:db8::2")
		report := testenv.Ask(t, a, req)
		theirs := <-ended
		require.Empty(t, theirs.Problem, name)
		checkReports(t, &req, &report, &theirs.Report)
	}
}

// Bytes of the omitted time do not count, and intervals are reported while the test runs.
func TestPerfOmit(t *testing.T) {
	a, b := twoNodes(t)
	served(t, b)
	var told []control.PerfInterval
	report := testenv.Ask(t, a, control.Perf{
		Addr: operatortest.Second, Time: time.Second, Omit: time.Second, Every: 200 * time.Millisecond,
		Rate: 8_000_000, Length: 1000,
		Interval: func(i control.PerfInterval) { told = append(told, i) },
	})
	assert.Equal(t, told, report.Intervals)
	var omitted, counted int64
	for _, i := range told {
		require.NotNil(t, i.Sum.Omitted)
		require.NotNil(t, i.Streams[0].SndCwnd, "a TCP sender has a congestion window")
		if *i.Sum.Omitted {
			assert.Zero(t, counted, "omitted intervals come first")
			omitted += i.Sum.Bytes
		} else {
			counted += i.Sum.Bytes
		}
	}
	assert.Positive(t, omitted)
	assert.LessOrEqual(t, counted, report.End.SumSent.Bytes)
	assert.Positive(t, *report.End.Streams[0].Sender.MaxSndCwnd)
}

func TestInvalidPerfRequests(t *testing.T) {
	a, _ := twoNodes(t)
	for want, req := range map[string]control.Perf{
		"cannot be used":         {Time: time.Second, Bytes: 1},
		`protocol "sctp"`:        {Proto: "sctp"},
		"are for TCP":            {Proto: control.PerfUDP, Congestion: "reno"},
		"whole objects":          {Proto: control.PerfRDT, Rate: 1},
		"parallel 129":           {Parallel: 129},
		"len 65508":              {Proto: control.PerfUDP, Length: 65508},
		"reverse and bidirectio": {Reverse: true, Bidir: true},
		"length -1":              {Length: -1},
	} {
		req.Addr = operatortest.Second
		_, err := control.Ask(t.Context(), a, req)
		require.ErrorIs(t, err, control.ErrUsage)
		assert.ErrorContains(t, err, want)
	}
	_, err := control.Ask(t.Context(), a, control.Perf{Addr: operatortest.Second})
	require.ErrorIs(t, err, control.ErrRefused)
	assert.EqualError(t, err,
		"perf: unable to connect to server: 10.0.0.2:5201: connection refused")
}

func TestPerfPortsInUse(t *testing.T) {
	a, b := twoNodes(t)
	ended := served(t, b)
	_, err := control.Ask(t.Context(), b, control.PerfServe{Background: true})
	require.ErrorIs(t, err, control.ErrPortInUse)
	assert.ErrorContains(t, err, "unable to start listener on port 5201")
	// Take the UDP port that a UDP test needs.
	c, err := b.Node.Packets.Listen(netip.MustParseAddrPort("0.0.0.0:5201"))
	require.NoError(t, err)
	_, err = control.Ask(t.Context(), a, control.Perf{
		Addr: operatortest.Second, Proto: control.PerfUDP, Bytes: 1000,
	})
	require.ErrorContains(t, err, "server error: it cannot create a stream")
	assert.Contains(t, (<-ended).Problem, "UDP port 5201: 0.0.0.0:5201: port in use")
	require.NoError(t, c.Close())

	list := testenv.Ask(t, b, control.PerfServers{})
	require.Len(t, list, 1)
	assert.Equal(t, 1, list[0].Tests)
	testenv.Ask(t, b, control.PerfClose{})
	require.ErrorIs(t, control.Order(t.Context(), b, control.PerfClose{}),
		control.ErrNoSuchSocket)
	operatortest.NoSockets(t, a)
	operatortest.NoSockets(t, b)
}

// dial opens a control connection that the test itself drives as a client.
func dial(t *testing.T, n *operator.Node) *iperf.Wire {
	t.Helper()
	c, err := n.Node.TCP.Dial(t.Context(), netip.AddrPortFrom(operatortest.Second, control.PerfPort))
	require.NoError(t, err)
	return iperf.NewWire(c)
}

// someCookie is a client's cookie.
var someCookie = []byte("abcdefghijklmnopqrstuvwxyz2345672345\x00")

// If a client sends invalid data or too much data, or aborts, the server reports that and serves
// the next client.
func TestInvalidPerfClients(t *testing.T) {
	params, err := iperf.AppendMessage(nil, &iperf.Params{TCP: true, Len: 1000, Time: 1})
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		sends [][]byte // what the client sends after the cookie and ParamExchange
		want  string
		hears string // what the client receives; empty: not checked
	}{
		"2 GB": {
			[][]byte{{0x80, 0, 0, 0}},
			"length 2147483648: must be 1 to 65536 bytes",
			"server error: it could not read the parameters",
		},
		"no JSON": {
			[][]byte{binary.BigEndian.AppendUint32(nil, 3), []byte("abc")},
			"invalid JSON at byte 1",
			"server error: it could not read the parameters",
		},
		"invalid parameters": {
			[][]byte{append([]byte{0, 0, 0, 9}, `{"len":0}`...)},
			"len 0: must be 1 to 1048576",
			"server error: it could not read the parameters",
		},
		"abort before the parameters": {nil, "control socket has closed unexpectedly", ""},
		"abort before the streams": {
			[][]byte{params}, "control socket has closed unexpectedly", "",
		},
		"a state instead of the streams": {
			[][]byte{params, {byte(iperf.TestEnd)}},
			"state TEST_END while the server waits for streams",
			"control socket has closed unexpectedly",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := twoNodes(t)
			ended := served(t, b)
			k := dial(t, a)
			require.NoError(t, k.Write(someCookie))
			require.NoError(t, k.Expect(iperf.ParamExchange))
			for _, piece := range tt.sends {
				require.NoError(t, k.Write(piece))
			}
			if tt.hears != "" {
				var err error
				for err == nil {
					_, err = k.Next()
				}
				assert.ErrorContains(t, err, tt.hears)
			}
			k.Conn().Abort()
			assert.Contains(t, (<-ended).Problem, tt.want)
			testenv.Ask(t, a, control.Perf{Addr: operatortest.Second, Bytes: 1000})
			assert.Empty(t, (<-ended).Problem)
			operatortest.NoSockets(t, a)
			operatortest.NoSockets(t, b)
		})
	}
}

// If a server sends an unexpected message during a test, the test ends at once and the error gives
// the reason.
func TestUnexpectedStateDuringATest(t *testing.T) {
	for _, says := range []iperf.State{0, iperf.TestEnd} {
		a, b := twoNodes(t)
		l, err := b.Node.TCP.Listen(netip.AddrPortFrom(operatortest.Second, control.PerfPort), 0)
		require.NoError(t, err)
		served := make(chan error, 1)
		go func() { served <- serveUnexpectedState(l, says) }()
		_, err = control.Ask(t.Context(), a, control.Perf{Addr: operatortest.Second, Time: time.Hour})
		require.ErrorIs(t, err, iperf.ErrMessage)
		assert.ErrorContains(t, err, fmt.Sprintf("state %v during the measurement", says))
		require.NoError(t, <-served)
		require.NoError(t, l.Close())
		operatortest.NoSockets(t, a)
		operatortest.NoSockets(t, b)
	}
}

// serveUnexpectedState is a server with one stream. It sends an unexpected message, and then waits
// until its client is gone.
func serveUnexpectedState(l *node.Listener, says iperf.State) error {
	c, err := l.AcceptTCP()
	if err != nil {
		return err
	}
	defer c.Abort()
	k := iperf.NewWire(c)
	var cookie iperf.Cookie
	err = k.Read(cookie[:])
	if err == nil {
		err = k.Say(iperf.ParamExchange)
	}
	if err == nil {
		_, err = k.Receive()
	}
	if err == nil {
		err = k.Say(iperf.CreateStreams)
	}
	if err != nil {
		return err
	}
	stream, err := l.AcceptTCP()
	if err != nil {
		return err
	}
	defer stream.Abort()
	for _, s := range []iperf.State{iperf.TestStart, iperf.TestRunning, says} {
		if err := k.Say(s); err != nil {
			return err
		}
	}
	if _, err := k.Next(); !errors.Is(err, iperf.ErrGone) {
		return fmt.Errorf("%w: the client did not stop", iperf.ErrMessage)
	}
	return nil
}

// A client that sends nothing does not block others, and an invalid cookie is reported.
func TestPerfClientsWithoutACookie(t *testing.T) {
	a, b := twoNodes(t)
	ended := served(t, b)
	said := make(chan string, 10)
	defer b.Node.Watchers.Watch(func(e control.Event) {
		if m, ok := e.(control.Message); ok {
			said <- m.Text
		}
	})()
	silent := dial(t, a)
	k := dial(t, a)
	require.NoError(t, k.Write([]byte("GET / HTTP/1.1\r\nHost: 10.0.0.2:5201\r\n\r\n")))
	assert.Regexp(t, `^perf 5201: 10\.0\.0\.1:\d+: invalid iperf3 message: the connection does not begin with a cookie$`,
		<-said)
	_, err := io.ReadAll(k.Conn())
	assert.ErrorIs(t, err, control.ErrReset)
	k.Conn().Abort()
	testenv.Ask(t, a, control.Perf{Addr: operatortest.Second, Bytes: 1000})
	assert.Empty(t, (<-ended).Problem)
	silent.Conn().Abort()
	operatortest.NoSockets(t, a)
	operatortest.NoSockets(t, b)
}

// Many connections without a cookie do not keep a client out: the oldest of them are closed.
func TestManyConnectionsWithoutACookie(t *testing.T) {
	a, b := twoNodes(t)
	ended := served(t, b)
	silent := make([]*iperf.Wire, iperf.MaxGreetings+10)
	for i := range silent {
		silent[i] = dial(t, a)
	}
	testenv.Ask(t, a, control.Perf{Addr: operatortest.Second, Bytes: 1000})
	assert.Empty(t, (<-ended).Problem)
	_, err := io.ReadAll(silent[0].Conn())
	require.ErrorIs(t, err, control.ErrReset, "the oldest connection is closed")
	for _, k := range silent {
		k.Conn().Abort()
	}
	operatortest.NoSockets(t, a)
	operatortest.NoSockets(t, b)
}

// startEndlessTest starts a test without an end and returns a channel with its result.
func startEndlessTest(ctx context.Context, t *testing.T, n *operator.Node) chan error {
	t.Helper()
	began, over := make(chan struct{}), make(chan error, 1)
	go func() {
		report, err := control.Ask(ctx, n, control.Perf{
			Addr: operatortest.Second, Time: time.Hour, Parallel: 2,
			Start: func(control.PerfStart) { close(began) },
		})
		if err == nil && report.Error != "" {
			err = fmt.Errorf("interrupted: %s", report.Error)
		}
		over <- err
	}()
	<-began
	return over
}

func TestBusyPerfServer(t *testing.T) {
	a, b := twoNodes(t)
	ended := served(t, b)
	ctx, cancel := context.WithCancel(t.Context())
	over := startEndlessTest(ctx, t, a)
	_, err := control.Ask(t.Context(), a, control.Perf{Addr: operatortest.Second, Bytes: 1000})
	require.ErrorIs(t, err, control.ErrBusy)
	assert.ErrorContains(t, err, "the server is busy running a test. try again later")
	cancel()
	assert.EqualError(t, <-over, "interrupted: interrupt - the client has terminated")
	assert.Contains(t, (<-ended).Problem, "the client has terminated")
	testenv.Ask(t, a, control.Perf{Addr: operatortest.Second, Bytes: 1000})
	operatortest.NoSockets(t, a)
	operatortest.NoSockets(t, b)
}

func TestPerfServerClosedDuringATest(t *testing.T) {
	a, b := twoNodes(t)
	ended := served(t, b)
	over := startEndlessTest(t.Context(), t, a)
	testenv.Ask(t, b, control.PerfClose{})
	assert.ErrorContains(t, <-over, "the server has terminated")
	assert.Contains(t, (<-ended).Problem, "the server has terminated")
	operatortest.NoSockets(t, a)
	operatortest.NoSockets(t, b)
}

// The client's node closes in the middle of the test.
func TestPerfClientAborts(t *testing.T) {
	a, b := twoNodes(t)
	ended := served(t, b)
	over := startEndlessTest(t.Context(), t, a)
	require.NoError(t, a.Close())
	require.Error(t, <-over)
	assert.Regexp(t, "control socket has closed|connection reset", (<-ended).Problem)
	operatortest.NoSockets(t, b)
}

// A server in the foreground with OneOff ends after one test.
func TestPerfServerInTheForeground(t *testing.T) {
	a, b := twoNodes(t)
	listening, done := make(chan struct{}), make(chan control.PerfServed, 1)
	var ended []control.PerfEnded
	go func() {
		served, err := control.Ask(t.Context(), b, control.PerfServe{
			OneOff: true, Listening: func(control.PerfServed) { close(listening) },
			Ended: func(e control.PerfEnded) { ended = append(ended, e) },
		})
		assert.NoError(t, err)
		done <- served
	}()
	<-listening
	testenv.Ask(t, a, control.Perf{Addr: operatortest.Second, Bytes: 1000})
	assert.Equal(t, 1, (<-done).Tests)
	require.Len(t, ended, 1)
	assert.Empty(t, ended[0].Problem)
	_, err := control.Ask(t.Context(), a, control.Perf{Addr: operatortest.Second, Bytes: 1000})
	assert.ErrorIs(t, err, control.ErrRefused)
}
