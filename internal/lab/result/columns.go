package result

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sampleColumns are the columns of a flow's samples, most of them with names of ss -ti. columns.csv
// has their units.
var sampleColumns = []column[Sample]{
	timeColumn("time_s", time.Second, func(s *Sample) *time.Duration { return &s.At }),
	integerColumn("cwnd", func(s *Sample) *int { return &s.Cwnd }),
	integerColumn("ssthresh", func(s *Sample) *int { return &s.Ssthresh }),
	timeColumn("rtt_sample", time.Millisecond, func(s *Sample) *time.Duration { return &s.RTT }),
	timeColumn("rtt", time.Millisecond, func(s *Sample) *time.Duration { return &s.SRTT }),
	timeColumn("rttvar", time.Millisecond, func(s *Sample) *time.Duration { return &s.RTTVar }),
	timeColumn("minrtt", time.Millisecond, func(s *Sample) *time.Duration { return &s.MinRTT }),
	timeColumn("rto", time.Millisecond, func(s *Sample) *time.Duration { return &s.RTO }),
	integerColumn("unacked", func(s *Sample) *int { return &s.Unacked }),
	integerColumn("in_flight", func(s *Sample) *int { return &s.InFlight }),
	integerColumn("sacked", func(s *Sample) *int { return &s.Sacked }),
	integerColumn("lost", func(s *Sample) *int { return &s.Lost }),
	integerColumn("retrans", func(s *Sample) *int { return &s.Retrans }),
	integerColumn("snd_wnd", func(s *Sample) *int { return &s.SendWindow }),
	integerColumn("bytes_acked", func(s *Sample) *uint64 { return &s.BytesAcked }),
	integerColumn("bytes_sent", func(s *Sample) *uint64 { return &s.BytesSent }),
	integerColumn("total_retrans", func(s *Sample) *uint64 { return &s.Retransmits }),
	integerColumn("timeouts", func(s *Sample) *uint64 { return &s.Timeouts }),
	integerColumn("dup_acks", func(s *Sample) *uint64 { return &s.DupAcks }),
	integerColumn("delivery_rate", func(s *Sample) *int64 { return &s.DeliveryRate }),
	integerColumn("pacing_rate", func(s *Sample) *int64 { return &s.PacingRate }),
	wordColumn("ca_state", func(s *Sample) *string { return &s.State }),
}

// ownPrefix is the prefix of the columns that scripts record.
const ownPrefix = "cc_"

// columns includes the columns that a script records. Missing values are empty.
func (Sample) columns(own []string) []column[Sample] {
	columns := sampleColumns
	for i, name := range own {
		columns = append(slices.Clip(columns), column[Sample]{
			name: ownPrefix + name,
			write: func(dst []byte, s *Sample) []byte {
				if i >= len(s.Own) || math.IsNaN(s.Own[i]) {
					return dst
				}
				return strconv.AppendFloat(dst, s.Own[i], 'g', -1, 64)
			},
			read: func(text string, s *Sample) (err error) {
				value := math.NaN()
				if text != "" {
					value, err = strconv.ParseFloat(text, 64)
				}
				s.Own = append(s.Own, value)
				return err
			},
		})
	}
	return columns
}

// segmentColumns are the columns of the segments that a sender sent and received. The ranges of a
// selective acknowledgment are FROM-TO, separated by semicolons.
var segmentColumns = []column[Segment]{
	timeColumn("time_s", time.Second, func(s *Segment) *time.Duration { return &s.At }),
	switchColumn("way", "in", "out", func(s *Segment) *bool { return &s.Received }),
	integerColumn("seq", func(s *Segment) *uint64 { return &s.Seq }),
	integerColumn("len", func(s *Segment) *int { return &s.Len }),
	integerColumn("ack", func(s *Segment) *uint64 { return &s.Ack }),
	integerColumn("window", func(s *Segment) *int { return &s.Window }),
	switchColumn("again", "yes", "", func(s *Segment) *bool { return &s.Again }),
	{"sack", writeSACK, readSACK},
}

func (Segment) columns([]string) []column[Segment] { return segmentColumns }

// pointColumns are the columns of the data that an application received.
var pointColumns = []column[Point]{
	timeColumn("time_s", time.Second, func(p *Point) *time.Duration { return &p.At }),
	{
		"bytes",
		func(dst []byte, p *Point) []byte { return strconv.AppendFloat(dst, p.Value, 'f', -1, 64) },
		func(text string, p *Point) (err error) {
			p.Value, err = strconv.ParseFloat(text, 64)
			return err
		},
	},
}

func (Point) columns([]string) []column[Point] { return pointColumns }

// eventColumns are the columns of a link's events. The column event has the letter of the event's
// LinkEventKind.
var eventColumns = []column[LinkEvent]{
	timeColumn("time_s", time.Second, func(e *LinkEvent) *time.Duration { return &e.At }),
	{
		"event",
		func(dst []byte, e *LinkEvent) []byte { return append(dst, byte(e.Kind)) },
		func(text string, e *LinkEvent) error {
			switch text {
			case "+", "-", "d", "#", "m":
				e.Kind = LinkEventKind(text[0])
				return nil
			}
			return fmt.Errorf("%q: must be +, -, d, # or m", text)
		},
	},
	integerColumn("flow", func(e *LinkEvent) *int { return &e.Flow }),
	integerColumn("bytes", func(e *LinkEvent) *int { return &e.Bytes }),
	timeColumn("wait_ms", time.Millisecond, func(e *LinkEvent) *time.Duration { return &e.Wait }),
	integerColumn("queued", func(e *LinkEvent) *int { return &e.Queued }),
	wordColumn("why", func(e *LinkEvent) *string { return &e.Why }),
}

func (LinkEvent) columns([]string) []column[LinkEvent] { return eventColumns }

// switchColumn is a column with one of two words.
func switchColumn[T any](name, yes, no string, at func(*T) *bool) column[T] {
	return column[T]{
		name: name,
		write: func(dst []byte, row *T) []byte {
			if *at(row) {
				return append(dst, yes...)
			}
			return append(dst, no...)
		},
		read: func(text string, row *T) error {
			*at(row) = text == yes
			if text != yes && text != no {
				return fmt.Errorf("%q: must be %q or %q", text, yes, no)
			}
			return nil
		},
	}
}

func writeSACK(dst []byte, s *Segment) []byte {
	for i, r := range s.SACK {
		if i > 0 {
			dst = append(dst, ';')
		}
		dst = strconv.AppendUint(dst, r[0], 10)
		dst = append(dst, '-')
		dst = strconv.AppendUint(dst, r[1], 10)
	}
	return dst
}

func readSACK(text string, s *Segment) error {
	if text == "" {
		return nil
	}
	for block := range strings.SplitSeq(text, ";") {
		from, to, _ := strings.Cut(block, "-")
		left, err := strconv.ParseUint(from, 10, 64)
		if err != nil {
			return err
		}
		right, err := strconv.ParseUint(to, 10, 64)
		if err != nil {
			return err
		}
		s.SACK = append(s.SACK, [2]uint64{left, right})
	}
	return nil
}
