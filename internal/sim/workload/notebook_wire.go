package workload

import (
	"bytes"
	"errors"
	"strconv"
)

type packet struct {
	seq  int
	sent float64 // time.time() of Python: seconds since 1970
	// bytes is the sender's count of acknowledged bytes, which a fixed window puts into each of its
	// packets; -1 for Tahoe.
	bytes int
}

func (p *packet) append(b []byte) []byte {
	b = appendStamp(b, p.seq, p.sent)
	if p.bytes >= 0 {
		b = append(b, `, "sent_bytes": `...)
		b = strconv.AppendInt(b, int64(p.bytes), 10)
	}
	return append(b, '}')
}

// Ack is what a receiver says of a segment.
type Ack struct {
	Seq    int
	SentAt float64 // what the segment said, seconds since 1970
	Bytes  int     // of its datagram
}

func (a *Ack) append(b []byte) []byte {
	b = appendStamp(b, a.Seq, a.SentAt)
	b = append(b, `, "ack_bytes": `...)
	b = strconv.AppendInt(b, int64(a.Bytes), 10)
	return append(b, '}')
}

func appendStamp(b []byte, seq int, at float64) []byte {
	b = append(b, `{"seq_num": `...)
	b = strconv.AppendInt(b, int64(seq), 10)
	b = append(b, `, "send_ts": `...)
	return appendFloat(b, at)
}

// appendFloat writes a number as Python prints it: the shortest that reads the same, and
// with a point. What Python prints with an exponent is no time.
func appendFloat(b []byte, x float64) []byte {
	from := len(b)
	b = strconv.AppendFloat(b, x, 'f', -1, 64)
	if bytes.IndexByte(b[from:], '.') < 0 {
		b = append(b, ".0"...)
	}
	return b
}

// handshake is what both ends begin with.
const handshake = `{"handshake": true}`

// message is whatever came, taken apart.
type message struct {
	seq       int
	sent      float64
	bytes     int // acknowledged
	fields    field
	handshake bool
}

// field is a set of the fields that a message has.
type field uint8

const (
	fieldSeq field = 1 << iota
	fieldSent
	fieldBytes

	fieldsData = fieldSeq | fieldSent
	fieldsAck  = fieldsData | fieldBytes
)

// errJSON is a datagram that is not one of the document's: its programs would end there.
var errJSON = errors.New("notebook: invalid message")

// parse reads one flat object of numbers and words. Unknown names are ignored.
func parse(b []byte) (m message, err error) {
	r := reader{b: b}
	r.want('{')
	for first := true; !r.bad && !r.take('}'); first = false {
		if !first {
			r.want(',')
		}
		name := r.name()
		r.want(':')
		r.value(&m, name)
	}
	r.space()
	if r.bad || len(r.b) > 0 {
		return message{}, errJSON
	}
	return m, nil
}

type reader struct {
	b   []byte
	bad bool
}

func (r *reader) space() {
	for len(r.b) > 0 && (r.b[0] == ' ' || r.b[0] == '\t' || r.b[0] == '\r' || r.b[0] == '\n') {
		r.b = r.b[1:]
	}
}

// take takes a byte if it is the next but for spaces.
func (r *reader) take(c byte) bool {
	r.space()
	if len(r.b) == 0 || r.b[0] != c {
		return false
	}
	r.b = r.b[1:]
	return true
}

func (r *reader) want(c byte) {
	if !r.take(c) {
		r.fail()
	}
}

func (r *reader) fail() { r.bad, r.b = true, nil }

// name reads a name, which has no escapes.
func (r *reader) name() []byte {
	r.want('"')
	end := bytes.IndexByte(r.b, '"')
	if end < 0 || bytes.IndexByte(r.b[:end], '\\') >= 0 {
		r.fail()
		return nil
	}
	name := r.b[:end]
	r.b = r.b[end+1:]
	return name
}

func (r *reader) value(m *message, name []byte) {
	r.space()
	end := 0
	for end < len(r.b) && !endsValue(r.b[end]) {
		end++
	}
	if end == 0 || end == len(r.b) {
		r.fail()
		return
	}
	text := r.b[:end]
	r.b = r.b[end:]
	switch string(name) {
	case "seq_num":
		m.seq = r.number(text)
		m.fields |= fieldSeq
	case "send_ts":
		m.sent = r.decimal(text)
		m.fields |= fieldSent
	case "ack_bytes":
		m.bytes = r.number(text)
		m.fields |= fieldBytes
	case "handshake":
		m.handshake = string(text) == "true"
	default:
		if s := string(text); s != "true" && s != "false" && s != "null" {
			r.decimal(text)
		}
	}
}

// endsValue reports whether a byte is behind a value.
func endsValue(c byte) bool {
	return c == ',' || c == '}' || c == ' ' || c == '\t' || c == '\r' || c == '\n'
}

// number reads a count of at most 48 bits, so that sums of counts do not overflow.
func (r *reader) number(text []byte) int {
	n, err := strconv.ParseUint(string(text), 10, 48)
	if err != nil {
		r.fail()
	}
	return int(n)
}

func (r *reader) decimal(text []byte) float64 {
	x, err := strconv.ParseFloat(string(text), 64)
	c := text[len(text)-1]
	if err != nil || c < '0' || c > '9' { // Go reads more words as numbers than JSON has
		r.fail()
	}
	return x
}
