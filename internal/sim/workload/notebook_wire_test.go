package workload

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Packets have the document's sizes. A segment with a number of five digits and a time of seven
// decimals is 49 bytes of JSON, and its acknowledgment is 66 bytes.
func TestMessageSizes(t *testing.T) {
	at := 1531915200.1234567
	p := packet{seq: 12345, sent: at, bytes: -1}
	b := p.append(nil)
	assert.Equal(t, `{"seq_num": 12345, "send_ts": 1531915200.1234567}`, string(b))
	assert.Len(t, b, 49)
	a := Ack{Seq: 12345, SentAt: at, Bytes: len(b)}
	b = a.append(nil)
	assert.Equal(t, `{"seq_num": 12345, "send_ts": 1531915200.1234567, "ack_bytes": 49}`, string(b))
	assert.Len(t, b, 66)
	p = packet{seq: 7, sent: 1531915201, bytes: 640}
	assert.Equal(t, `{"seq_num": 7, "send_ts": 1531915201.0, "sent_bytes": 640}`, string(p.append(nil)))
	assert.True(t, json.Valid(b))
}

// Python's clock is a float64 in seconds. Python prints as many digits as are needed to represent
// it exactly.
func TestPythonTimes(t *testing.T) {
	for at, want := range map[clock.Time]string{
		0:             "1531915200.0",
		1:             "1531915200.0",
		100_000_000:   "1531915200.1",
		123_456_789:   "1531915200.1234567",
		1_000_000_238: "1531915201.0000002",
		1_500_000_000: "1531915201.5",
	} {
		assert.Equal(t, want, string(appendFloat(nil, pythonTime(at))), "%d", at)
	}
	for _, at := range []clock.Time{1, 1e9, 123_456_789_012} {
		later := virtual(pythonTime(at))
		assert.Greater(t, pythonTime(later), pythonTime(at))
		assert.InDelta(t, float64(at), float64(later), 2000)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]message{
		`{"seq_num": 17, "send_ts": 1531915200.5}`:                   {seq: 17, sent: 1531915200.5},
		`{"seq_num": 7, "send_ts": 1531915201.0, "sent_bytes": 640}`: {seq: 7, sent: 1531915201},
		`{"seq_num": 0, "send_ts": 1000.0, "ack_bytes": 49}`:         {sent: 1000, bytes: 49, ack: true},
		`{"handshake": true}`:                                        {handshake: true},
	} {
		m, err := parse([]byte(text))
		require.NoError(t, err, text)
		assert.Equal(t, want, m, text)
	}
	for _, text := range []string{
		``, `{`, `}`, `[]`, `{}`, `{"seq_num": 1`, `{"seq_num": 1, "send_ts": 1.0}}`,
		`{"seq_num": -1, "send_ts": 1.0}`, `{"seq_num": 1.5, "send_ts": 1.0}`,
		`{"seq_num": 99999999999999999, "send_ts": 1.0}`, `{"seq_num": 1, "send_ts": 0x1p}`,
		`{"seq_num": 1, "send_ts": 1.0, "ack_bytes": }`, `{"send_ts": 1.0, "seq_num": 1}`,
		`{"handshake": false}`,
	} {
		_, err := parse([]byte(text))
		assert.ErrorIs(t, err, errMessage, text)
	}
}

// A parsed acknowledgment keeps its meaning when it is written again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"seq_num": 17, "send_ts": 1531915200.5, "ack_bytes": 49}`))
	f.Add([]byte(handshake))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parse(b)
		if err != nil || !m.ack {
			return
		}
		a := Ack{Seq: m.seq, SentAt: m.sent, Bytes: m.bytes}
		again, err := parse(a.append(nil))
		require.NoError(t, err)
		assert.InDelta(t, m.sent, again.sent, 0)
		m.sent = again.sent // the number may be NaN, which differs from itself
		assert.Equal(t, m, again)
	})
}
