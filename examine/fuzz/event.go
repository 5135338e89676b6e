package fuzz

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Kind is the kind of an Event.
type Kind uint8

// The kinds of events.
const (
	Listen   Kind = iota // the user accepts connections
	Connect              // the user opens a connection
	Write                // the user writes Len bytes
	Read                 // the user reads up to Len bytes
	Shutdown             // the user closes the sending side
	Close                // the user closes the connection
	Wait                 // a second passes
	Send                 // the peer sends a segment
)

var kindNames = [...]string{
	"listen", "connect", "write", "read", "shutdown", "close", "wait", "send",
}

// Event is one step of a sequence. Its numbers are relative, so an event means the same for any
// stack. String returns it as a line of a check file.
type Event struct {
	Kind  Kind
	Flags tcp.Flags
	// Seq is the distance from the next sequence number of the peer, or with Beyond from the end of
	// the stack's window. Only segments with Seq zero advance the peer.
	Seq    int32
	Beyond bool
	// Ack is the distance from the next sequence number that the peer expects.
	Ack int32
	Len int
}

// peerMSS is the MSS option of the peer's SYN. Some stacks are more tolerant if a SYN has no option
// at all.
const peerMSS = 1000

// Settle is how long each event takes: within this time, delayed acknowledgments arrive.
const Settle = 100 * time.Millisecond

// DelayedACK is a longer time for programs that may delay acknowledgments by 250 ms, such as lwIP.
const DelayedACK = 300 * time.Millisecond

// longWait is the time that Wait takes.
const longWait = time.Second

// String returns the event as a line of a check file.
func (e Event) String() string {
	switch e.Kind {
	case Write, Read:
		return fmt.Sprintf("%s %d", kindNames[e.Kind], e.Len)
	case Wait:
		return "wait 1 s"
	case Send:
	default:
		return kindNames[e.Kind]
	}
	var b strings.Builder
	b.WriteString("send " + letters(e.Flags))
	if e.Beyond {
		b.WriteString(" seq edge" + signed(e.Seq))
	} else if e.Seq != 0 {
		b.WriteString(" seq next" + signed(e.Seq))
	}
	if e.Ack != 0 {
		b.WriteString(" ack got" + signed(e.Ack))
	}
	if e.Len > 0 {
		fmt.Fprintf(&b, " len %d", e.Len)
	}
	if e.Flags.Has(tcp.SYN) {
		fmt.Fprintf(&b, " mss %d", peerMSS)
	}
	return b.String()
}

func signed(n int32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%+d", n)
}

// letters returns flags as packetdrill's letters.
func letters(f tcp.Flags) string {
	const names = "FSRP."
	var b strings.Builder
	for i := range len(names) {
		if f&(1<<i) != 0 {
			b.WriteByte(names[i])
		}
	}
	if b.Len() == 0 {
		return "-"
	}
	return b.String()
}

// lines returns a sequence as lines of a check file.
func lines(events []Event) []string {
	var list []string
	for _, e := range events {
		list = append(list, e.String())
	}
	return list
}

// The values of generated segments. Common values are listed more than once.
var (
	flagChoices = []tcp.Flags{
		tcp.SYN, tcp.SYN | tcp.ACK, tcp.ACK, tcp.ACK, tcp.PSH | tcp.ACK, tcp.PSH | tcp.ACK,
		tcp.FIN | tcp.ACK, tcp.FIN | tcp.ACK, tcp.RST, tcp.RST | tcp.ACK, 0, tcp.FIN, tcp.PSH,
		tcp.SYN | tcp.FIN, tcp.SYN | tcp.RST, tcp.FIN | tcp.PSH | tcp.ACK,
	}
	seqChoices = []int32{0, 0, 0, 0, -1, 1, 10, -10, -20, 20, -1 << 30}
	ackChoices = []int32{0, 0, 0, 0, 0, -1, 1, -10, 10, 1 << 20, -1 << 20}
)

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// randomSegment returns a segment of the peer.
func randomSegment(r *rand.Rand) Event {
	e := Event{Kind: Send, Flags: pick(r, flagChoices), Seq: pick(r, seqChoices)}
	if r.IntN(16) == 0 {
		e.Beyond, e.Seq = true, 100
	}
	if e.Flags.Has(tcp.ACK) {
		e.Ack = pick(r, ackChoices)
	}
	if e.Flags.Has(tcp.PSH) {
		e.Len = 10
	}
	return e
}

// randomEvent returns a random event that may follow others: any event except opening a connection.
func randomEvent(r *rand.Rand) Event {
	const callShare, waitShare = 4, 24
	switch {
	case r.IntN(waitShare) == 0:
		return Event{Kind: Wait}
	case r.IntN(callShare) > 0:
		return randomSegment(r)
	}
	e := Event{Kind: Write + Kind(r.IntN(int(Close-Write)+1))}
	switch e.Kind {
	case Write:
		e.Len = 10
	case Read:
		e.Len = 100
	default: // other kinds have no length
	}
	return e
}
