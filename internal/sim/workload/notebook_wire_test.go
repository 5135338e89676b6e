package workload

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Packets have the document's sizes: 49 bytes of JSON with a number of five digits and a time of
// seven decimals, 66 for its acknowledgment.
func TestMessagesWeighWhatPythonsDo(t *testing.T) {
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

// Python's clock is a float64: seconds, of which it shows as many digits as it takes.
func TestTimesAreThoseOfPython(t *testing.T) {
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

func TestMessagesAreRead(t *testing.T) {
	for text, want := range map[string]message{
		`{"seq_num": 17, "send_ts": 1531915200.5}`:        {seq: 17, sent: 1531915200.5, fields: fieldsData},
		` { "ack_bytes":49 ,"send_ts":1e3,"seq_num":0 } `: {sent: 1000, bytes: 49, fields: fieldsAck},
		`{"handshake": true}`:                             {handshake: true},
		`{"handshake": false}`:                            {},
		`{}`:                                              {},
		`{"sent_bytes": 640, "x": null}`:                  {},
	} {
		m, err := parse([]byte(text))
		require.NoError(t, err, text)
		assert.Equal(t, want, m, text)
	}
	for _, text := range []string{
		``, `{`, `}`, `[]`, `{"seq_num": 1`, `{"seq_num": 1}}`, `{"seq_num": -1, "send_ts": 1.0}`,
		`{"seq_num": 1.5}`, `{"seq_num": 99999999999999999}`, `{"send_ts": Infinity}`,
		`{"send_ts": nan}`, `{"send_ts": 0x1p}`, `{"seq_num" 1}`, `{"seq_num": }`, `{seq_num: 1}`,
		`{"seq_num": 1 "send_ts": 2}`, `{,}`, `{"a\"b": 1}`, `{"a": "b"}`,
	} {
		_, err := parse([]byte(text))
		assert.ErrorIs(t, err, errJSON, text)
	}
}

// A parsed message keeps its meaning when it is written again, and everything that is accepted is
// JSON.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"seq_num": 17, "send_ts": 1531915200.5, "ack_bytes": 49}`))
	f.Add([]byte(handshake))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parse(b)
		if err != nil || m.fields != fieldsAck {
			return
		}
		a := Ack{Seq: m.seq, SentAt: m.sent, Bytes: m.bytes}
		again, err := parse(a.append(nil))
		require.NoError(t, err)
		m.handshake = false
		assert.Equal(t, m, again)
		var v map[string]any
		if json.Unmarshal(b, &v) == nil { // names that come twice, or in another case, differ
			if x, ok := v["seq_num"].(float64); ok {
				assert.Equal(t, strconv.Itoa(m.seq), strconv.FormatFloat(x, 'f', -1, 64))
			}
		}
	})
}
