package iperf

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Limits of messages. The first two are sizes in bytes; the others are the limits of iperf3.
const (
	MaxParams  = 64 << 10
	MaxResults = 1 << 20

	MaxStreams  = 128
	MaxBlock    = 1 << 20
	MaxDatagram = 65507
	MaxSeconds  = 86400
	MaxOmit     = 600 // maximum omitted time, in seconds
	MaxWindow   = 512 << 20
	MaxMSS      = 9 << 10
	MaxBurst    = 1000
	MinDatagram = 16 // length of a header
)

// ErrMessage is the error of a message that does not follow the protocol.
var ErrMessage = errors.New("invalid iperf3 message")

// PrefixSize is the size in bytes of the length in front of a message.
const PrefixSize = 4

// Length parses a message's prefix. It rejects lengths above most.
func Length(prefix [PrefixSize]byte, most int) (int, error) {
	n := binary.BigEndian.Uint32(prefix[:])
	if n == 0 || uint64(n) > uint64(most) {
		return 0, fmt.Errorf("%w: length %d: must be 1 to %d bytes", ErrMessage, n, most)
	}
	return int(n), nil
}

// AppendMessage appends a message with its prefix.
func AppendMessage(b []byte, m any) ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return b, err
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
	return append(b, text...), nil
}

// Params are the parameters that a client requests.
type Params struct {
	TCP bool `json:"tcp,omitempty"`
	UDP bool `json:"udp,omitempty"`
	RCP bool `json:"rcp,omitempty"` // this field does not exist in iperf3
	RDT bool `json:"rdt,omitempty"` // this field does not exist in iperf3
	// RDTPorts are the ports of the client's objects, one for each stream that it sends.
	RDTPorts []uint16 `json:"rdt_ports,omitempty"`

	Omit int `json:"omit"` // omitted time in seconds
	// Time is in seconds; 0: the test runs until Num or Blocks are sent.
	Time       float64 `json:"time"`
	Num        int64   `json:"num"`        // number of bytes; 0: no limit
	Blocks     int64   `json:"blockcount"` // number of blocks; 0: no limit
	MSS        int     `json:"MSS,omitempty"`
	NoDelay    bool    `json:"nodelay,omitempty"`
	Parallel   int     `json:"parallel"`
	Reverse    bool    `json:"reverse,omitempty"`
	Bidir      bool    `json:"bidirectional,omitempty"`
	Window     int     `json:"window,omitempty"`
	Len        int     `json:"len"`
	Bandwidth  int64   `json:"bandwidth,omitempty"` // bits per second of each stream; 0: no limit
	Burst      int     `json:"burst,omitempty"`     // number of blocks sent at once
	TOS        int     `json:"TOS,omitempty"`
	Congestion string  `json:"congestion,omitempty"`
	Wide       Number  `json:"udp_counters_64bit,omitempty"` // if not 0, Header has 16 bytes
	Pacing     int     `json:"pacing_timer,omitempty"`       // timer interval in microseconds

	Version string `json:"client_version,omitempty"`
}

// ParseParams parses and checks a client's parameters.
func ParseParams(text []byte) (p Params, err error) {
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("%w: parameters: %s", ErrMessage, describeJSONError(err))
	}
	return p, p.Check()
}

// Check returns an ErrMessage if the parameters do not describe a valid test.
func (p *Params) Check() error {
	p.Parallel = cmp.Or(p.Parallel, 1)
	most := MaxBlock
	if p.UDP {
		most = MaxDatagram
	}
	for _, limit := range []struct {
		name          string
		value, lo, hi int64
	}{
		{"parallel", int64(p.Parallel), 1, MaxStreams},
		{"len", int64(p.Len), 1, int64(most)},
		{"omit", int64(p.Omit), 0, MaxOmit},
		{"num", p.Num, 0, math.MaxInt64},
		{"blockcount", p.Blocks, 0, math.MaxInt64},
		{"window", int64(p.Window), 0, MaxWindow},
		{"MSS", int64(p.MSS), 0, MaxMSS},
		{"bandwidth", p.Bandwidth, 0, math.MaxInt64},
		{"burst", int64(p.Burst), 0, MaxBurst},
		{"TOS", int64(p.TOS), 0, 255},
		{"rdt_ports", int64(len(p.RDTPorts)), 0, MaxStreams},
	} {
		if limit.value < limit.lo || limit.value > limit.hi {
			return fmt.Errorf("%w: %s %d: must be %d to %d", ErrMessage, limit.name, limit.value,
				limit.lo, limit.hi)
		}
	}
	switch {
	case !(p.Time >= 0 && p.Time <= MaxSeconds):
		return fmt.Errorf("%w: time %v: must be 0 to %d", ErrMessage, p.Time, MaxSeconds)
	case p.UDP && p.Len < MinDatagram:
		return fmt.Errorf("%w: len %d: must be at least %d for UDP", ErrMessage, p.Len, MinDatagram)
	case p.Reverse && p.Bidir:
		return fmt.Errorf("%w: reverse and bidirectional cannot be used together", ErrMessage)
	case len(p.Congestion) > 64:
		return fmt.Errorf("%w: congestion control name with %d bytes: must be at most 64",
			ErrMessage, len(p.Congestion))
	case strings.Count(p.Proto(), ",") > 0:
		return fmt.Errorf("%w: protocols %s: must be only one", ErrMessage, p.Proto())
	case p.RDT && (!p.Reverse || p.Bidir) && len(p.RDTPorts) != p.Parallel:
		return fmt.Errorf("%w: %d rdt_ports for %d streams: must be one per stream", ErrMessage,
			len(p.RDTPorts), p.Parallel)
	}
	return nil
}

// Proto returns the name of the streams' protocol: TCP, UDP, RCP or RDT. Check allows only one.
func (p *Params) Proto() string {
	var names []string
	for _, proto := range []struct {
		name string
		on   bool
	}{{"TCP", p.TCP}, {"UDP", p.UDP}, {"RCP", p.RCP}, {"RDT", p.RDT}} {
		if proto.on {
			names = append(names, proto.name)
		}
	}
	if len(names) == 0 {
		return "TCP" // the default of iperf3
	}
	return strings.Join(names, ",")
}

// StreamCounts returns the number of streams on which the client sends, and on which the server
// sends.
func (p *Params) StreamCounts() (client, server int) {
	switch {
	case p.Bidir:
		return p.Parallel, p.Parallel
	case p.Reverse:
		return 0, p.Parallel
	}
	return p.Parallel, 0
}

// Duration returns Time as a time.Duration.
func (p *Params) Duration() time.Duration { return time.Duration(p.Time * float64(time.Second)) }

// OmitTime returns how long the test runs before it counts bytes.
func (p *Params) OmitTime() time.Duration { return time.Duration(p.Omit) * time.Second }

// StreamID returns the number of the stream that was opened as the i-th, counted from 0. The
// numbers are 1, 3, 4, 5 and so on: iperf3 skips 2.
func StreamID(i int) int {
	if i == 0 {
		return 1
	}
	return i + 2
}

// Number is an integer as iperf3 writes one. The JSON text may be a fraction, a boolean, or a
// negative number written as unsigned.
type Number int64

// UnmarshalJSON accepts all forms that Number describes.
func (n *Number) UnmarshalJSON(text []byte) error {
	switch s := string(text); s {
	case "true":
		*n = 1
	case "false", "null":
		*n = 0
	default:
		if v, err := strconv.ParseInt(s, 10, 64); err == nil {
			*n = Number(v)
			return nil
		}
		if v, err := strconv.ParseUint(s, 10, 64); err == nil {
			*n = Number(v) // 18446744073709551615 stands for -1
			return nil
		}
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(v) {
			return fmt.Errorf("%.40q is not a number", s)
		}
		*n = Number(max(-1<<62, min(1<<62, v)))
		if v > 1<<63 {
			*n = -1 // old versions of cJSON write -1 like this
		}
	}
	return nil
}

// describeJSONError describes a JSON error without Go's type names.
func describeJSONError(err error) string {
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%q cannot be a %s", bad.Field, bad.Value)
	}
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("invalid JSON at byte %d: %v", bad.Offset, bad)
	}
	return err.Error()
}
