package result_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// A log as mm-link writes it. It has a drop, which mahimahi's own graph does not read.
const link = `# mahimahi mm-link (Uplink) [12mbps] > log
# command line: 'mm-link' '12mbps' '12mbps'
# queue: droptail [packets=2]
# init timestamp: 1500000000000
# base timestamp: 100
100 + 1504
101 # 1504
101 - 1504 1
101 + 1504
101 + 1504
101 + 1504
101 d 1 1504
102 # 1504
102 - 1504 1
103 # 1504
103 - 1504 2
`

func TestReadLog(t *testing.T) {
	l, err := result.ReadLog("log", strings.NewReader(link))
	require.NoError(t, err)
	require.Len(t, l.Events, 11)
	assert.Equal(t, "up", l.Name)
	assert.Equal(t, result.LinkEvent{At: 0, Kind: result.Arrival, Flow: -1, Bytes: 1504, Queued: 1504}, l.Events[0])
	assert.Equal(t, "drop", l.Events[6].Why)
	assert.Equal(t, 2*1504, l.Events[6].Queued)
	assert.Equal(t, 2*time.Millisecond, l.Events[10].Wait)
	d := l.Digest()
	assert.Equal(t, result.Digest{
		Length: 3 * time.Millisecond, Capacity: 12.032e6, Ingress: 8 * 4 * 1504 / .003, Egress: 12.032e6,
		Arrived: 4, Departed: 3, Dropped: 1, DroppedBytes: 1504,
		Wait50: time.Millisecond, Wait95: 2 * time.Millisecond, Wait99: 2 * time.Millisecond,
		WaitMax: 2 * time.Millisecond, Signal95: time.Millisecond,
	}, d)
}

// A millisecond without packets has a signal delay of one more than the next millisecond.
func TestSignalDelay(t *testing.T) {
	l, err := result.ReadLog("log", strings.NewReader("0 + 10\n20 + 10\n25 - 10 25\n26 - 10 6\n"))
	require.NoError(t, err)
	// The delays are 25 ms at 0, then 25 at 1, 24 at 2, and so on down to 6 at 20.
	assert.Equal(t, 25*time.Millisecond, l.Digest().Signal95)
}

func TestPantheonLog(t *testing.T) {
	l, err := result.ReadLog("log", strings.NewReader(
		"# init timestamp: 5\n# base timestamp: 0\n1.500 + 1460 1\n2.750 + 1460 2\n31.625 - 1460 30.125 1\n"))
	require.NoError(t, err)
	assert.Equal(t, 1, l.Events[0].Flow)
	assert.Equal(t, 2, l.Events[1].Flow)
	assert.Equal(t, result.LinkEvent{
		At: 31625 * time.Microsecond, Kind: result.Departure, Flow: 1, Bytes: 1460,
		Wait: 30125 * time.Microsecond, Queued: 1460,
	}, l.Events[2])
}

// A written log can be read again. Its sizes include the 4 bytes of a TUN device. A link whose rate
// is a number gets opportunities.
func TestWriteLog(t *testing.T) {
	at := func(ms float64, kind result.LinkEventKind, wait float64) result.LinkEvent {
		return result.LinkEvent{
			At: time.Duration(ms * 1e6), Kind: kind, Bytes: 1500, Wait: time.Duration(wait * 1e6),
		}
	}
	l := &result.LinkRecord{Name: "down", Rate: 12e6, Events: []result.LinkEvent{
		at(.2, result.Arrival, 0), at(.3, result.Arrival, 0), at(.4, result.Marked, 0),
		at(1.2, result.Departure, 1), at(2.2, result.Departure, 1), at(3, result.Drop, 0),
	}}
	var out bytes.Buffer
	require.NoError(t, l.WriteLog(&out, result.LogHeader{
		Link: "Downlink", Trace: "12Mbit/s", Queue: "droptail [packets=2]", Command: "two\nlines", Note: "a",
	}))
	assert.Equal(t, `# mahimahi mm-link (Downlink) [12Mbit/s] > log
# command line: two lines
# queue: droptail [packets=2]
# note: a
# init timestamp: 0
# base timestamp: 0
0 + 1504
0 + 1504
1 # 1504
1 - 1504 1
2 # 1504
2 - 1504 1
3 # 1504
3 d 1 1504
`, out.String())
	back, err := result.ReadLog("log", &out)
	require.NoError(t, err)
	assert.Equal(t, "down", back.Name)
	assert.InDelta(t, 12.032e6, back.Digest().Capacity, 1)
}

func TestInvalidLogs(t *testing.T) {
	for text, want := range map[string]string{
		"":                "log: no events; expected lines such as 12 + 1504",
		"# only\n":        "log: no events; expected lines such as 12 + 1504",
		"x + 1\n":         `log:1: "x" is not a time in milliseconds`,
		"1 + 1\n0 + 1\n":  "log:2: 0s follows 1ms: times must be in ascending order",
		"1 ? 1\n":         `log:1: "1 ? 1": must be a time in ms, one of + - # d, and numbers`,
		"1 +\n":           `log:1: "1 +": must be a time in ms, one of + - # d, and numbers`,
		"1 - 5\n":         `log:1: "1 - 5": a departure must have its bytes and its delay in ms`,
		"1 d 5\n":         `log:1: "1 d 5": a drop must have its packets and its bytes`,
		"1 + -5\n":        `log:1: "-5" is not a number`,
		"1 + NaN\n":       `log:1: "NaN" is not a number`,
		"1e300 + 5\n":     `log:1: "1e300" is not a time in milliseconds`,
		"1 m 5\n":         `log:1: "1 m 5": must be a time in ms, one of + - # d, and numbers`,
		"1 + 1 2 3 4 5\n": `log:1: "1 + 1 2 3 4 5": must be a time in ms, one of + - # d, and numbers`,
	} {
		_, err := result.ReadLog("log", strings.NewReader(text))
		require.EqualError(t, err, want, "%q", text)
	}
}

func FuzzReadLog(f *testing.F) {
	f.Add([]byte(link))
	f.Add([]byte("1.500 + 1460 1\n31.625 - 1460 30.125 1\n"))
	f.Add([]byte("5 d 2 3008\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := result.ReadLog("log", bytes.NewReader(text))
		if err != nil {
			var e *diagnostic.Error
			require.ErrorAs(t, err, &e)
			return
		}
		d := l.Digest()
		require.NotEmpty(t, l.Events)
		require.GreaterOrEqual(t, d.Length, time.Duration(0))
		require.NoError(t, l.WriteLog(&bytes.Buffer{}, result.LogHeader{}))
	})
}
