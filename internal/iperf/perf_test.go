package iperf_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/iperf"
)

func TestStates(t *testing.T) {
	assert.Equal(t, "EXCHANGE_RESULTS", iperf.ExchangeResults.String())
	assert.Equal(t, "ACCESS_DENIED", iperf.AccessDenied.String())
	assert.Equal(t, "state 99", iperf.State(99).String())
	assert.Contains(t, iperf.CodeText(iperf.CodeCongestion), "congestion control")
	assert.Equal(t, "error 77", iperf.CodeText(77))
}

// A cookie is 36 letters of the base 32 alphabet of RFC 4648 §6, in lower case.
func TestCookies(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a, b := iperf.NewCookie(r), iperf.NewCookie(r)
	assert.True(t, a.Valid())
	assert.NotEqual(t, a, b)
	assert.Regexp(t, "^[a-z2-7]{36}$", a.String())
	a[36] = 'x'
	assert.False(t, a.Valid(), "without the final zero")
	b[3] = '\n'
	assert.False(t, b.Valid())
	assert.False(t, new(iperf.Cookie).Valid())
}

func TestMessageLength(t *testing.T) {
	b, err := iperf.AppendMessage(nil, map[string]int{"time": 3})
	require.NoError(t, err)
	n, err := iperf.Length([4]byte(b), 100)
	require.NoError(t, err)
	assert.JSONEq(t, `{"time":3}`, string(b[4:4+n]))
	for _, prefix := range [][4]byte{{}, {0x80}, {0x7f, 0xff, 0xff, 0xff}, {0, 1, 0, 1}} {
		_, err := iperf.Length(prefix, iperf.MaxParams)
		assert.ErrorIs(t, err, iperf.ErrMessage, "%x", prefix)
	}
	_, err = iperf.Length([4]byte{0x80}, iperf.MaxParams)
	assert.EqualError(t, err, "invalid iperf3 message: length 2147483648: must be 1 to 65536 bytes")
}

// iperf3Params are the parameters that iperf3 3.12 sends.
const iperf3Params = `{"tcp":true,"omit":1,"time":1,"num":0,"blockcount":0,"parallel":2,` +
	`"reverse":true,"window":65536,"len":131072,"bandwidth":3000000,"pacing_timer":1000,` +
	`"congestion":"cubic","client_version":"3.12"}`

func TestParameters(t *testing.T) {
	p, err := iperf.ParseParams([]byte(iperf3Params))
	require.NoError(t, err)
	assert.Equal(t, "TCP", p.Proto())
	client, server := p.StreamCounts()
	assert.Equal(t, []int{0, 2}, []int{client, server})
	assert.Equal(t, time.Second, p.Duration())
	assert.Equal(t, time.Second, p.OmitTime())
	text, err := json.Marshal(&p)
	require.NoError(t, err)
	assert.JSONEq(t, iperf3Params, string(text))

	p, err = iperf.ParseParams([]byte(`{"udp":true,"time":2,"len":1348,"bidirectional":true,` +
		`"udp_counters_64bit":1,"unknown":[1,2]}`))
	require.NoError(t, err)
	client, server = p.StreamCounts()
	assert.Equal(t, []int{1, 1}, []int{client, server}, "the default is one stream")
	assert.Equal(t, "UDP", p.Proto())
	assert.NotZero(t, p.Wide)
}

func TestUnmeasurableParameters(t *testing.T) {
	for want, text := range map[string]string{
		"invalid JSON at byte":      `{"tcp":tr`,
		`"len" cannot be a string`:  `{"len":"all"}`,
		"parallel 129":              `{"len":1,"parallel":129}`,
		"parallel -1":               `{"len":1,"parallel":-1}`,
		"len 0":                     `{"tcp":true}`,
		"len 1048577":               `{"len":1048577}`,
		"len 65508":                 `{"udp":true,"len":65508}`,
		"at least 16 for UDP":       `{"udp":true,"len":15}`,
		"time -1":                   `{"len":1,"time":-1}`,
		"time 1e+99":                `{"len":1,"time":1e99}`,
		"omit 601":                  `{"len":1,"omit":601}`,
		"window 536870913":          `{"len":1,"window":536870913}`,
		"num -5":                    `{"len":1,"num":-5}`,
		"TCP,UDP: must be only one": `{"len":16,"tcp":true,"udp":true}`,
		"reverse and bidir":         `{"len":1,"reverse":true,"bidirectional":true}`,
		"name with 65 bytes":        `{"len":1,"congestion":"` + strings.Repeat("c", 65) + `"}`,
		"0 rdt_ports for 1":         `{"len":1,"rdt":true}`,
	} {
		_, err := iperf.ParseParams([]byte(text))
		require.ErrorIs(t, err, iperf.ErrMessage, text)
		assert.ErrorContains(t, err, want)
	}
}

func TestIperf3Results(t *testing.T) {
	// cJSON writes -1 as this unsigned number.
	text := `{"cpu_util_total":0.99,"cpu_util_user":0.07,"cpu_util_system":0.92,` +
		`"sender_has_retransmits":18446744073709551615,"congestion_used":"cubic","streams":[` +
		`{"id":1,"bytes":393216,"retransmits":18446744073709551615,"jitter":0,"errors":0,` +
		`"packets":0,"start_time":0,"end_time":0.999939},` +
		`{"id":3,"bytes":5,"retransmits":7,"jitter":0.001,"errors":2,"packets":9,"end_time":1}]}`
	r, err := iperf.ParseResults([]byte(text), 2)
	require.NoError(t, err)
	assert.EqualValues(t, -1, r.Retransmits)
	one, ok := r.Of(iperf.StreamID(0))
	require.True(t, ok)
	assert.EqualValues(t, 393216, one.Bytes)
	assert.EqualValues(t, -1, one.Retransmits)
	two, ok := r.Of(iperf.StreamID(1))
	require.True(t, ok, "the second stream is number 3")
	assert.EqualValues(t, 7, two.Retransmits)
	_, ok = r.Of(2)
	assert.False(t, ok)

	for want, text := range map[string]string{
		"results of 0 streams: must be 1":  `{}`,
		"results of 2 streams: must be 1":  `{"streams":[{"id":1},{"id":3}]}`,
		"-5 bytes":                         `{"streams":[{"id":1,"bytes":-5}]}`,
		"end time -1 s":                    `{"streams":[{"id":1,"end_time":-1}]}`,
		"invalid JSON at byte":             `{"streams":`,
		`"streams" cannot be a number`:     `{"streams":1}`,
		`results: "\"x\"" is not a number`: `{"streams":[{"id":"x"}]}`,
		`"cpu_util_total" cannot be a s`:   `{"cpu_util_total":"a"}`,
	} {
		_, err := iperf.ParseResults([]byte(text), 1)
		require.ErrorIs(t, err, iperf.ErrMessage, text)
		assert.ErrorContains(t, err, want)
	}
	_, err = iperf.ParseResults([]byte(`{"streams":[{"id":1},{"id":1}]}`), 2)
	assert.ErrorContains(t, err, "two results of stream 1")
}

func TestStreamNumbers(t *testing.T) {
	var ids []int
	for i := range 4 {
		ids = append(ids, iperf.StreamID(i))
	}
	assert.Equal(t, []int{1, 3, 4, 5}, ids)
}

func TestGreetings(t *testing.T) {
	assert.True(t, iperf.IsGreeting(iperf.AppendGreeting(nil)))
	assert.True(t, iperf.IsReply(iperf.AppendReply(nil)))
	assert.True(t, iperf.IsGreeting([]byte{0x15, 0xcd, 0x5b, 0x07}), "123456789: older versions")
	assert.False(t, iperf.IsGreeting([]byte("6789")),
		"a reply, or a greeting in the other byte order")
	assert.False(t, iperf.IsGreeting(iperf.AppendReply(nil)))
	assert.False(t, iperf.IsGreeting([]byte("67890")))
	assert.False(t, iperf.IsReply(nil))
}

func TestDatagramHeader(t *testing.T) {
	h := iperf.Header{Sent: 1_700_000_000*time.Second + 123456*time.Microsecond, Number: 1<<32 + 5}
	b := make([]byte, 16)
	h.Put(b, true)
	got, ok := iperf.ParseHeader(b, true)
	require.True(t, ok)
	assert.Equal(t, h, got)
	h.Put(b, false)
	got, ok = iperf.ParseHeader(b[:12], false)
	require.True(t, ok)
	assert.Equal(t, uint64(5), got.Number)
	_, ok = iperf.ParseHeader(b[:11], false)
	assert.False(t, ok)
	_, ok = iperf.ParseHeader(b[:15], true)
	assert.False(t, ok)
}

func TestLossAndReordering(t *testing.T) {
	var a iperf.Arrivals
	for _, n := range []uint64{1, 2, 5, 3, 6, 6} {
		a.Add(0, iperf.Header{Number: n})
	}
	assert.Equal(t, uint64(6), a.Highest)
	assert.Equal(t, int64(2), a.Early, "3, and the duplicate of 6")
	assert.Equal(t, int64(0), a.Lost, "3 came late; iperf3 counts the duplicate as 4")
	a.Add(0, iperf.Header{Number: 1 << 40})
	assert.Equal(t, uint64(6), a.Highest, "an impossible number is ignored")
}

// RFC 3550 §6.4.1: jitter is the smoothed difference of two transit times, with a gain of a
// sixteenth.
func TestJitter(t *testing.T) {
	var a iperf.Arrivals
	const ms = time.Millisecond
	a.Add(105*ms, iperf.Header{Sent: 100 * ms, Number: 1})
	assert.Zero(t, a.Jitter, "one datagram has no jitter")
	a.Add(131*ms, iperf.Header{Sent: 110 * ms, Number: 2})
	assert.Equal(t, ms, a.Jitter, "a difference of 16 ms, divided by 16")
	a.Add(141*ms, iperf.Header{Sent: 120 * ms, Number: 3})
	assert.Equal(t, ms-ms/16, a.Jitter)
	a.Add(125*ms, iperf.Header{Sent: 120 * ms, Number: 4})
	assert.InDelta(t, float64(15*ms/16+(16*ms-15*ms/16)/16), float64(a.Jitter), 2,
		"the difference is absolute")
}

func TestPace(t *testing.T) {
	var none iperf.Pace
	assert.Zero(t, none.Wait(0, 1<<40))
	p := iperf.Pace{Rate: 8_000_000, Block: 1000} // the rate is 1 MB/s
	assert.Zero(t, p.Wait(0, 0))
	assert.Equal(t, time.Millisecond, p.Wait(0, 1000))
	assert.Equal(t, 400*time.Microsecond, p.Wait(600*time.Microsecond, 1000))
	assert.Zero(t, p.Wait(2*time.Millisecond, 1000))
	p.Burst = 4
	assert.Zero(t, p.Wait(0, 3000), "within the burst")
	assert.Equal(t, 4*time.Millisecond, p.Wait(0, 4000))
	assert.Equal(t, 4*time.Millisecond, p.Wait(0, 7000))
}

// FuzzParams checks that every input results in parameters within their limits, or in an error.
func FuzzParams(f *testing.F) {
	f.Add([]byte(iperf3Params))
	f.Add([]byte(`{"udp":true,"len":1348,"time":1e3,"udp_counters_64bit":true}`))
	f.Add([]byte(`{"rdt":true,"rdt_ports":[1],"len":4}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := iperf.ParseParams(text)
		if err != nil {
			require.ErrorIs(t, err, iperf.ErrMessage)
			return
		}
		client, server := p.StreamCounts()
		assert.True(t, client+server >= 1 && client+server <= 2*iperf.MaxStreams)
		assert.True(t, p.Len >= 1 && p.Len <= iperf.MaxBlock)
		again, err := json.Marshal(&p)
		require.NoError(t, err)
		q, err := iperf.ParseParams(again)
		require.NoError(t, err)
		// JSON does not distinguish a nil list of ports from an empty one
		once, err := json.Marshal(&q)
		require.NoError(t, err)
		assert.Equal(t, string(again), string(once))
	})
}

func FuzzResults(f *testing.F) {
	f.Add([]byte(`{"streams":[{"id":1,"bytes":18446744073709551615}]}`))
	f.Add([]byte(`{"cpu_util_total":1e308,"streams":[{"id":1,"jitter":1e-9,"end_time":3}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := iperf.ParseResults(text, 1)
		if err != nil {
			require.ErrorIs(t, err, iperf.ErrMessage)
			return
		}
		require.Len(t, r.Streams, 1)
		assert.False(t, r.Streams[0].Bytes < 0 || r.Streams[0].Packets < 0)
	})
}
