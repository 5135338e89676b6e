package main

import (
	"encoding/binary"
	"slices"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// state is what a mutant remembers about a run.
type state struct {
	next   uint32 // the number that the subject expects, from its last acknowledgment
	sent   map[uint32]bool
	acks   map[uint32]bool
	window uint16 // window in the last segment to the subject
	opened bool   // the subject has sent a SYN without ACK
	losses int    // retransmissions so far
	missed map[uint32]int
	isn    uint32 // the subject's initial sequence number
	acked  uint32 // acknowledged by the last segment to the subject
	// highest is the end of the latest data to the subject. probed is set if the last segment was
	// old.
	highest uint32
	probed  bool
	owed    bool // a segment is not acknowledged yet
}

// mutant is a faulty variant of the subject: it changes packets to or from the subject as a
// plausible bug would. A nil result drops the packet.
type mutant struct {
	name string
	area string // the area in which the examiner must find the bug, or a prefix of the area's name
	to   func(s *state, p packet) packet
	from func(s *state, p packet) packet
	// knobs configure the subject's TCP, for bugs that no change of packets can produce.
	knobs tcp.Knobs
}

// dropTo returns a mutant that does not receive some packets, dropFrom one that does not send some.
func dropTo(name, area string, drops func(s *state, p packet) bool) mutant {
	return mutant{name: name, area: area, to: dropping(drops)}
}

func dropFrom(name, area string, drops func(s *state, p packet) bool) mutant {
	return mutant{name: name, area: area, from: dropping(drops)}
}

func dropping(drops func(s *state, p packet) bool) func(*state, packet) packet {
	return func(s *state, p packet) packet {
		if drops(s, p) {
			return nil
		}
		return p
	}
}

// editTo and editFrom return mutants that change some packets and compute their checksums again.
func editTo(name, area string, when func(p packet) bool, edit func(s *state, p packet)) mutant {
	return mutant{name: name, area: area, to: editing(when, edit)}
}

func editFrom(name, area string, when func(p packet) bool, edit func(s *state, p packet)) mutant {
	return mutant{name: name, area: area, from: editing(when, edit)}
}

func editing(when func(p packet) bool, edit func(s *state, p packet)) func(*state, packet) packet {
	return func(s *state, p packet) packet {
		if !when(p) {
			return p
		}
		edit(s, p)
		return p.sealed()
	}
}

// sumFrom computes the checksum over n bytes, with a length in the pseudo-header.
func sumFrom(name string, change func(size int) (n, length int)) mutant {
	return mutant{name: name, area: "tcp checksum", from: func(_ *state, p packet) packet {
		if p.tcp() {
			p.sum(change(len(p.body())))
		}
		return p
	}}
}

func with(flags byte) func(p packet) bool { return func(p packet) bool { return p.has(flags) } }

// plain reports whether a segment has data and neither SYN nor RST.
func plain(p packet) bool { return p.tcp() && p.flags()&(syn|rst) == 0 }

func setFlags(change func(f byte) byte) func(*state, packet) {
	return func(_ *state, p packet) { p.body()[13] = change(p.flags()) }
}

func setWindow(change func(w uint16) uint16) func(*state, packet) {
	return func(_ *state, p packet) { binary.BigEndian.PutUint16(p.body()[14:], change(p.win())) }
}

func add32(at int, n uint32) func(*state, packet) {
	return func(_ *state, p packet) {
		b := p.body()[at:]
		binary.BigEndian.PutUint32(b, binary.BigEndian.Uint32(b)+n)
	}
}

// mutants are the faulty variants.
var mutants = slices.Concat(handshakes, streams, numbers, flows, timers, closings, packets, routers)

var handshakes = []mutant{
	dropTo("drop SYNs with options", "tcp options", func(_ *state, p packet) bool {
		return p.has(syn) && len(p.options()) > 0
	}),
	dropTo("drop segments with options", "tcp options", func(_ *state, p packet) bool {
		return p.tcp() && len(p.options()) > 0
	}),
	editFrom("acknowledge a SYN with its own sequence number", "tcp handshake", with(syn|ack),
		add32(8, ^uint32(0))),
	editFrom("SYN with ACK", "tcp handshake", func(p packet) bool {
		return p.has(syn) && p.flags()&ack == 0
	}, setFlags(func(f byte) byte { return f | ack })),
	dropFrom("no SYN-ACK after the first", "tcp", func(s *state, p packet) bool {
		return p.has(syn|ack) && s.repeats(p)
	}),
	dropFrom("no SYN after the first", "tcp retransmission", func(s *state, p packet) bool {
		return p.has(syn) && p.flags()&ack == 0 && s.repeats(p)
	}),
	dropFrom("silence instead of RST", "tcp reset", func(_ *state, p packet) bool {
		return p.has(rst)
	}),
	editFrom("RST with sequence number 0", "tcp reset", with(rst), func(_ *state, p packet) {
		binary.BigEndian.PutUint32(p.body()[4:], 0)
	}),
	editFrom("RST for a SYN without ACK flag", "tcp reset", with(rst|ack),
		setFlags(func(f byte) byte { return f &^ ack })),
	dropTo("ignore RST", "tcp reset", func(_ *state, p packet) bool { return p.has(rst) }),
	editTo("accept any RST", "tcp reset", with(rst), func(s *state, p packet) {
		if s.next != 0 {
			binary.BigEndian.PutUint32(p.body()[4:], s.next)
		}
	}),
	dropTo("accept only a SYN-ACK in SYN-SENT", "tcp handshake", func(s *state, p packet) bool {
		return s.opened && p.has(syn) && p.flags()&ack == 0
	}),
	dropTo("drop a SYN with ECN flags", "tcp header", func(_ *state, p packet) bool {
		return p.has(syn | ece)
	}),
	dropTo("ignore a SYN in a connection", "tcp challenge", func(s *state, p packet) bool {
		return p.has(syn) && s.next != 0 && p.seq()-s.next < 1<<16
	}),
	editFrom("window scale in every SYN-ACK", "tcp options", func(p packet) bool {
		return p.has(syn|ack) && len(p.options()) >= 4
	}, func(_ *state, p packet) { copy(p.options(), []byte{1, 3, 3, 7}) }),
	editTo("ignore the MSS", "tcp options", func(p packet) bool {
		return p.has(syn) && p.option(2) != nil
	}, func(_ *state, p packet) { copy(p.option(2), []byte{5, 180}) }),
	editTo("scale the window of the SYN too", "tcp options", func(p packet) bool {
		return p.has(syn) && p.option(3) != nil && p.win() < 1<<13
	}, setWindow(func(w uint16) uint16 { return w << 2 })),
	editTo("do not scale windows", "tcp options", func(p packet) bool {
		return p.has(syn) && p.option(3) != nil
	}, func(_ *state, p packet) { p.option(3)[0] = 0 }),
}

var streams = []mutant{
	sumFrom("compute the checksum over the header only",
		func(size int) (n, length int) { return 20, size }),
	sumFrom("leave the data out of the pseudo-header's length",
		func(size int) (n, length int) { return size, 20 }),
	sumFrom("leave an odd last byte out of the checksum",
		func(size int) (n, length int) { return size &^ 1, size }),
	editTo("do not verify the TCP checksum", "tcp checksum", func(p packet) bool {
		return p.tcp() && p.body()[12]>>4 >= 5
	}, func(*state, packet) {}),
	dropTo("drop data of odd length", "tcp checksum", func(_ *state, p packet) bool {
		return plain(p) && len(p.data())%2 == 1 && len(p.data()) > 1
	}),
	dropTo("drop urgent data", "tcp header", func(_ *state, p packet) bool { return p.has(urg) }),
	dropTo("drop early segments", "tcp reassembly", func(s *state, p packet) bool {
		ahead := p.seq() - s.next
		return plain(p) && p.span() > 0 && ahead > 0 && ahead < 1<<16
	}),
	dropTo("drop old segments without an ACK", "tcp acknowledgment",
		func(s *state, p packet) bool {
			return plain(p) && p.span() > 0 && int32(p.seq()-s.next) < 0
		}),
	dropTo("accept only segments that begin at the next byte", "tcp reassembly",
		func(s *state, p packet) bool {
			behind := s.next - p.seq()
			return plain(p) && behind > 0 && behind < p.span()
		}),
	editTo("accept data without ACK", "tcp acknowledgment", func(p packet) bool {
		return plain(p) && p.flags()&ack == 0
	}, setFlags(func(f byte) byte { return f | ack })),
	dropFrom("no duplicate acknowledgments", "tcp acknowledgment", func(s *state, p packet) bool {
		if !plain(p) || p.span() > 0 {
			return false
		}
		old := s.acks[p.ack()]
		s.acks[p.ack()] = true
		return old
	}),
	editFrom("acknowledge one byte too few", "tcp acknowledgment", func(p packet) bool {
		return plain(p) && p.flags()&fin == 0
	}, add32(8, ^uint32(0))),
	dropFrom("no retransmission of data", "tcp retransmission", func(s *state, p packet) bool {
		return plain(p) && len(p.data()) > 0 && s.repeats(p)
	}),
	editFrom("retransmit with a later sequence number", "tcp retransmission",
		func(p packet) bool { return plain(p) && len(p.data()) > 0 }, func(s *state, p packet) {
			if s.repeats(p) {
				add32(4, uint32(len(p.data())))(s, p)
			}
		}),
	editFrom("echo a constant timestamp", "tcp options", func(p packet) bool {
		return plain(p) && p.option(8) != nil
	}, func(_ *state, p packet) { copy(p.option(8)[4:], []byte{0, 0, 3, 232}) }),
	editFrom("report SACK blocks that are off by one", "tcp options", func(p packet) bool {
		return plain(p) && p.option(5) != nil
	}, func(_ *state, p packet) { p.option(5)[7]++ }),
}

var flows = []mutant{
	editTo("ignore the peer's window", "tcp flow control", plain,
		setWindow(func(uint16) uint16 { return 65535 })),
	editTo("ignore the window of the SYN-ACK", "tcp flow control", with(syn|ack),
		setWindow(func(uint16) uint16 { return 65535 })),
	editTo("read the window as a signed number", "tcp flow control", with(ack),
		setWindow(func(w uint16) uint16 {
			if w > 32767 {
				return 0
			}
			return w
		})),
	dropTo("no window update without new data", "tcp flow control",
		func(s *state, p packet) bool {
			return plain(p) && p.span() == 0 && s.window == 0 && p.win() > 0
		}),
	dropFrom("no zero-window probes", "tcp flow control", func(s *state, p packet) bool {
		return plain(p) && s.window == 0 && len(p.data()) <= 1
	}),
	editFrom("announce a constant window", "tcp flow control", plain,
		setWindow(func(uint16) uint16 { return 65535 })),
	editFrom("announce too small a window while data is buffered", "tcp flow control", plain,
		setWindow(func(w uint16) uint16 { return w - (65535-w)/2 })),
	editFrom("announce 10 bytes for a closed window", "tcp flow control", func(p packet) bool {
		return plain(p) && p.win() == 0
	}, setWindow(func(uint16) uint16 { return 10 })),
	dropFrom("increase the RTO after each loss", "tcp retransmission", (*state).late),
}

// late reports whether a packet is an early retransmission of a segment after another segment was
// lost twice. With a longer RTO, the subject would send it later.
func (s *state) late(p packet) bool {
	const losses, early = 2, 2
	if !plain(p) || len(p.data()) == 0 || !s.repeats(p) {
		return false
	}
	if s.losses < losses {
		s.losses++
		return false
	}
	s.missed[p.seq()]++
	return s.missed[p.seq()] <= early
}

var closings = []mutant{
	editFrom("FIN without ACK", "tcp closing", with(fin),
		setFlags(func(f byte) byte { return f &^ ack })),
	dropFrom("no FIN", "tcp closing", func(_ *state, p packet) bool { return p.has(fin) }),
	dropFrom("no FIN after the first", "tcp retransmission", func(s *state, p packet) bool {
		return p.has(fin) && s.repeats(p)
	}),
	editTo("ignore FIN", "tcp closing", with(fin),
		setFlags(func(f byte) byte { return f &^ fin })),
	editTo("ignore the FIN of a segment with data", "tcp closing", func(p packet) bool {
		return p.has(fin) && len(p.data()) > 0
	}, setFlags(func(f byte) byte { return f &^ fin })),
	dropTo("forget a FIN that arrives early", "tcp closing", func(s *state, p packet) bool {
		return p.has(fin) && p.seq() != s.next && p.seq()-s.next < 1<<16
	}),
	dropTo("no TIME-WAIT: ignore a repeated FIN", "tcp closing", func(s *state, p packet) bool {
		return p.has(fin) && p.seq()+1 == s.next
	}),
}
