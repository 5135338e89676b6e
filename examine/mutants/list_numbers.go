package main

import (
	"encoding/binary"
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// numbers are bugs in sequence numbers and acknowledgments.
var numbers = []mutant{
	{
		name: "every initial sequence number is 0", area: "tcp sequence numbers",
		from: editing(packet.tcp, func(s *state, p packet) {
			if p.has(syn) {
				s.isn = p.seq()
			}
			add32(4, -s.isn)(s, p)
		}),
		to: editing(packet.tcp, func(s *state, p packet) {
			if p.has(ack) {
				add32(8, s.isn)(s, p)
			}
		}),
	},
	dropTo("compare sequence numbers without wraparound", "tcp sequence numbers",
		func(s *state, p packet) bool {
			return plain(p) && p.span() > 0 && p.seq() < s.next && int32(p.seq()-s.next) >= 0
		}),
	{
		name: "acknowledge early data", area: "tcp acknowledgment",
		to: func(s *state, p packet) packet {
			if plain(p) && int32(p.seq()+p.span()-s.highest) > 0 {
				s.highest = p.seq() + p.span()
			}
			return p
		},
		from: editing(plain, func(s *state, p packet) {
			if s.highest-p.ack() < 1<<16 {
				binary.BigEndian.PutUint32(p.body()[8:], s.highest)
			}
		}),
	},
	editTo("deliver early data as the next", "tcp reassembly", func(p packet) bool {
		return plain(p) && len(p.data()) > 0
	}, func(s *state, p packet) {
		if p.seq()-s.next < 1<<16 {
			binary.BigEndian.PutUint32(p.body()[4:], s.next)
		}
	}),
	editTo("deliver old data again", "tcp reassembly", func(p packet) bool {
		return plain(p) && len(p.data()) > 0
	}, func(s *state, p packet) {
		if s.next-p.seq() == uint32(len(p.data())) {
			binary.BigEndian.PutUint32(p.body()[4:], s.next)
		}
	}),
	editFrom("data without ACK flag", "tcp", func(p packet) bool {
		return plain(p) && len(p.data()) > 0
	}, setFlags(func(f byte) byte { return f &^ ack })),
	dropTo("accept only data with PSH", "tcp", func(_ *state, p packet) bool {
		return plain(p) && len(p.data()) > 0 && p.flags()&8 == 0
	}),
	editTo("do not check the RST flag", "tcp reset", with(rst),
		setFlags(func(f byte) byte { return f &^ rst })),
}

// timers are bugs in timers and windows.
var timers = []mutant{
	{
		name: "the RTO never grows", area: "tcp retransmission",
		knobs: tcp.Knobs{Recovery: tcp.Recovery{
			RTOMin: 200 * time.Millisecond, RTOMax: 200 * time.Millisecond,
			RTOInitial: 200 * time.Millisecond,
		}},
	},
	{
		name: "an initial window of 25 segments that never shrinks", area: "tcp congestion control",
		knobs: tcp.Knobs{Recovery: tcp.Recovery{
			Strategy: "gbn", Congestion: "fixed", FixedWindow: 25_000, InitialWindow: 25,
		}},
	},
	dropFrom("acknowledge only every second segment", "tcp acknowledgment",
		func(s *state, p packet) bool {
			if !plain(p) || p.span() > 0 || p.ack() == s.next {
				return false
			}
			s.owed = !s.owed
			return s.owed
		}),
	dropTo("ignore duplicate acknowledgments", "tcp congestion control",
		func(s *state, p packet) bool {
			if !plain(p) || p.span() > 0 {
				return false
			}
			old := p.ack() == s.acked && p.win() == s.window
			s.acked = p.ack()
			return old
		}),
	{
		name: "fill even a small window", area: "tcp flow control",
		to: editing(plain, func(s *state, p packet) {
			if small(p.win()) {
				setWindow(func(uint16) uint16 { return 1000 })(s, p)
			}
		}),
		from: func(s *state, p packet) packet {
			if plain(p) && small(s.window) && len(p.data()) > int(s.window) {
				return p.cut(int(s.window))
			}
			return p
		},
	},
	{
		name: "announce a few free bytes in answer to a probe", area: "tcp flow control",
		to: func(s *state, p packet) packet {
			s.probed = plain(p) && p.seq() == s.next-1
			return p
		},
		from: editing(plain, func(s *state, p packet) {
			if s.probed && p.win() == 0 {
				setWindow(func(uint16) uint16 { return 10 })(s, p)
			}
		}),
	},
	editFrom("a window of 0 in the SYN-ACK", "tcp", with(syn|ack),
		setWindow(func(uint16) uint16 { return 0 })),
}

func small(window uint16) bool { return window > 0 && window < 100 }
