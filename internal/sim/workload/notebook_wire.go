package workload

import (
	"bytes"
	"errors"
	"strconv"
)

type packet struct {
	seq  int
	sent float64 // Python's time.time(): seconds since 1970
	// bytes is the sender's count of acknowledged bytes. A fixed window includes it in each of its
	// packets; it is -1 for Tahoe.
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
	SentAt float64 // timestamp of the segment in seconds since 1970
	Bytes  int     // number of bytes of the datagram
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
	ack       bool
	bytes     int // number of bytes in an acknowledgment
	handshake bool
}

// errMessage is the error of an invalid datagram, which would end the document's programs.
var errMessage = errors.New("notebook: invalid message")

// parse parses a message as append writes it. The document's programs write no other JSON.
func parse(b []byte) (m message, err error) {
	if string(b) == handshake {
		return message{handshake: true}, nil
	}
	b, begins := bytes.CutPrefix(b, []byte(`{"seq_num": `))
	b, ends := bytes.CutSuffix(b, []byte{'}'})
	seq, b, _ := bytes.Cut(b, []byte(`, "send_ts": `))
	sent, b, _ := bytes.Cut(b, []byte(`, "`))
	var errs [3]error
	m.seq, errs[0] = count(seq)
	m.sent, errs[1] = strconv.ParseFloat(string(sent), 64)
	if b, m.ack = bytes.CutPrefix(b, []byte(`ack_bytes": `)); m.ack {
		m.bytes, errs[2] = count(b)
	}
	if !begins || !ends || errs != [3]error{} {
		return message{}, errMessage
	}
	return m, nil
}

// count parses a count of at most 48 bits, so that sums of counts do not overflow.
func count(text []byte) (int, error) {
	n, err := strconv.ParseUint(string(text), 10, 48)
	return int(n), err
}
