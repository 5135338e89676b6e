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

// Ack is a receiver's acknowledgment of a segment.
type Ack struct {
	Seq    int
	SentAt float64 // the segment's timestamp, seconds since 1970
	Bytes  int     // of the datagram
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

// appendFloat formats a number as Python prints it: the shortest text with the same value, with a
// decimal point. Numbers that Python prints with an exponent are not times.
func appendFloat(b []byte, x float64) []byte {
	from := len(b)
	b = strconv.AppendFloat(b, x, 'f', -1, 64)
	if bytes.IndexByte(b[from:], '.') < 0 {
		b = append(b, ".0"...)
	}
	return b
}

// handshake is the first message of both ends.
const handshake = `{"handshake": true}`

// message is a parsed message of any kind.
type message struct {
	seq       int
	sent      float64
	bytes     int // acknowledged bytes
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

// errJSON is the error of an invalid datagram, which would end the document's programs.
var errJSON = errors.New("notebook: invalid message")

// parse parses one flat object of numbers and words. It ignores unknown names.
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

// take consumes a byte if it is the next one after spaces.
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

// name reads a name without escapes.
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

// endsValue reports whether a byte can follow a value.
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
	if err != nil || c < '0' || c > '9' { // Go accepts more notations of numbers than JSON
		r.fail()
	}
	return x
}
