package examine

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// TCP flags.
const (
	flagFIN = 1 << iota
	flagSYN
	flagRST
	flagPSH
	flagACK
	flagURG
	flagECE
	flagCWR
)

// flagLetters are the letters of the flags in packetdrill's notation, by bit.
const flagLetters = "FSRP.UEW"

// tcpHeaderLen and other sizes of headers, in bytes.
const (
	tcpHeaderLen  = 20
	icmpHeaderLen = 8
	ripHeaderLen  = 4
)

// packet is a packet that the examiner sent or received, decoded.
type packet struct {
	at   clock.Time
	link int
	sent bool // the examiner sent it
	raw  []byte
	ip   ip.Header
	fail string // why a peer ignores the packet; empty: it is valid
	body []byte // the bytes after the IP header
	tcp  *segment
	rip  *ripMessage
}

// segment is a TCP segment. Unlike tcp.Header, it can be malformed.
type segment struct {
	sport, dport uint16
	seq, ack     uint32
	flags        byte
	win, urg     uint16
	options      []byte
	data         []byte
}

// span returns how many sequence numbers the segment occupies.
func (s *segment) span() int64 {
	n := int64(len(s.data))
	if s.flags&flagSYN != 0 {
		n++
	}
	if s.flags&flagFIN != 0 {
		n++
	}
	return n
}

// option returns the body of the first option of a kind.
func (s *segment) option(kind byte) ([]byte, bool) {
	b := s.options
	for len(b) > 0 && b[0] != 0 {
		if b[0] == 1 {
			b = b[1:]
			continue
		}
		if len(b) < 2 || b[1] < 2 || int(b[1]) > len(b) {
			return nil, false
		}
		if b[0] == kind {
			return b[2:b[1]], true
		}
		b = b[b[1]:]
	}
	return nil, false
}

// ripMessage is a message of the course's RIP.
type ripMessage struct {
	command, count int
	entries        []ripEntry
	width          int // length of an entry in bytes
}

type ripEntry struct {
	prefix netip.Prefix
	cost   int
}

// decode decodes a packet that arrived. It always succeeds and records errors in packet.fail.
func decode(at clock.Time, link int, raw []byte) *packet {
	p := &packet{at: at, link: link, raw: raw}
	h, body, drop := ip.ParseHeader(raw)
	p.ip, p.body = h, body
	if drop != ip.DropNone {
		p.fail = "IP: " + drop.String()
		return p
	}
	if h.Is6() || h.IsFragment() {
		return p
	}
	switch h.Protocol {
	case ip.ProtoTCP:
		p.decodeTCP()
	case ip.ProtoRIP:
		p.decodeRIP()
	case ip.ProtoICMP:
		if len(body) < icmpHeaderLen || checksum.Checksum(body) != 0 {
			p.fail = "ICMP: too short or wrong checksum"
		}
	}
	return p
}

func (p *packet) decodeTCP() {
	b := p.body
	if len(b) < tcpHeaderLen {
		p.fail = fmt.Sprintf("TCP: %d bytes are shorter than a header", len(b))
		return
	}
	offset := int(b[12]>>4) * 4
	s := &segment{
		sport: binary.BigEndian.Uint16(b), dport: binary.BigEndian.Uint16(b[2:]),
		seq: binary.BigEndian.Uint32(b[4:]), ack: binary.BigEndian.Uint32(b[8:]), flags: b[13],
		win: binary.BigEndian.Uint16(b[14:]), urg: binary.BigEndian.Uint16(b[18:]),
	}
	p.tcp = s
	if offset < tcpHeaderLen || offset > len(b) {
		p.fail = fmt.Sprintf("TCP: data offset of %d bytes", offset)
		return
	}
	s.options, s.data = b[tcpHeaderLen:offset], b[offset:]
	pseudo := checksum.PseudoHeader(p.ip.Src, p.ip.Dst, ip.ProtoTCP, len(b))
	if !checksum.Verify(b, pseudo) {
		p.fail = "TCP: wrong checksum" + p.guessChecksum()
	}
}

// guessChecksum names a common incorrect computation that results in the packet's checksum.
func (p *packet) guessChecksum() string {
	b := p.body
	for _, g := range []struct {
		what   string
		sum    uint64
		length int
	}{
		{"the pseudo-header is missing", 0, len(b)},
		{
			"the pseudo-header has the length of the header only",
			checksum.PseudoHeader(p.ip.Src, p.ip.Dst, ip.ProtoTCP, tcpHeaderLen), len(b),
		},
		{
			"the pseudo-header has the length of the IP packet",
			checksum.PseudoHeader(p.ip.Src, p.ip.Dst, ip.ProtoTCP, len(p.raw)), len(b),
		},
		{
			"only the header is summed",
			checksum.PseudoHeader(p.ip.Src, p.ip.Dst, ip.ProtoTCP, len(b)), tcpHeaderLen,
		},
		{
			"the data is missing from the sum and from the length",
			checksum.PseudoHeader(p.ip.Src, p.ip.Dst, ip.ProtoTCP, tcpHeaderLen), tcpHeaderLen,
		},
		{
			"the last odd byte is missing from the sum",
			checksum.PseudoHeader(p.ip.Src, p.ip.Dst, ip.ProtoTCP, len(b)), len(b) &^ 1,
		},
	} {
		if checksum.Verify(b[:g.length], g.sum) {
			return " (" + g.what + ")"
		}
	}
	if b[16] == 0 && b[17] == 0 {
		return " (it is 0)"
	}
	return ""
}

func (p *packet) decodeRIP() {
	b := p.body
	if len(b) < ripHeaderLen {
		p.fail = fmt.Sprintf("RIP: %d bytes are shorter than a header", len(b))
		return
	}
	m := &ripMessage{
		command: int(binary.BigEndian.Uint16(b)), count: int(binary.BigEndian.Uint16(b[2:])),
	}
	p.rip = m
	b = b[ripHeaderLen:]
	if m.count == 0 {
		if len(b) > 0 {
			p.fail = fmt.Sprintf("RIP: num_entries is 0, but %d bytes follow", len(b))
		}
		return
	}
	m.width = len(b) / m.count
	if len(b)%m.count != 0 || m.width != 8 && m.width != 12 {
		p.fail = fmt.Sprintf("RIP: num_entries is %d, but %d bytes follow", m.count, len(b))
		return
	}
	for ; len(b) > 0; b = b[m.width:] {
		bits := 32
		if m.width == 12 {
			mask := binary.BigEndian.Uint32(b[8:])
			for bits = 0; mask&0x80000000 != 0; mask <<= 1 {
				bits++
			}
		}
		addr := netip.AddrFrom4([4]byte(b[4:8]))
		m.entries = append(m.entries, ripEntry{
			netip.PrefixFrom(addr, bits), int(int32(binary.BigEndian.Uint32(b))),
		})
	}
}

// appendRIP appends a message with entries of width bytes.
func appendRIP(b []byte, command, width int, entries []ripEntry) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(command))
	b = binary.BigEndian.AppendUint16(b, uint16(len(entries)))
	for _, e := range entries {
		b = binary.BigEndian.AppendUint32(b, uint32(e.cost))
		addr := e.prefix.Masked().Addr().As4()
		b = append(b, addr[:]...)
		if width == 12 {
			b = binary.BigEndian.AppendUint32(b, uint32(0xffffffff<<(32-e.prefix.Bits())))
		}
	}
	return b
}

// append appends the segment with its checksum.
func (s *segment) append(b []byte, src, dst netip.Addr) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint16(b, s.sport)
	b = binary.BigEndian.AppendUint16(b, s.dport)
	b = binary.BigEndian.AppendUint32(b, s.seq)
	b = binary.BigEndian.AppendUint32(b, s.ack)
	for len(s.options)%4 != 0 {
		s.options = append(s.options, 1)
	}
	b = append(b, byte((tcpHeaderLen+len(s.options))/4)<<4, s.flags)
	b = binary.BigEndian.AppendUint16(b, s.win)
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint16(b, s.urg)
	b = append(append(b, s.options...), s.data...)
	t := b[start:]
	sum := checksum.Sum(t, checksum.PseudoHeader(src, dst, ip.ProtoTCP, len(t)))
	binary.BigEndian.PutUint16(t[16:], ^checksum.Fold(sum))
	return b
}

// describe returns the packet in the notation of check files. It makes sequence numbers relative to
// the connection c, which may be nil.
func (p *packet) describe(c *conn) string {
	var b strings.Builder
	switch {
	case p.tcp != nil:
		p.tcp.describe(&b, c, p.sent)
	case p.rip != nil:
		p.rip.describe(&b)
	default:
		fmt.Fprintf(&b, "packet proto %d", p.ip.Protocol)
		if p.ip.Protocol == ip.ProtoICMP && len(p.body) >= 2 {
			fmt.Fprintf(&b, " type %d code %d", p.body[0], p.body[1])
		}
		fmt.Fprintf(&b, " src %s dst %s ttl %d", p.ip.Src, p.ip.Dst, p.ip.TTL)
		if p.ip.Protocol == ip.ProtoTest {
			fmt.Fprintf(&b, " data %.40q", p.body)
		}
	}
	if p.link > 0 || p.rip != nil {
		fmt.Fprintf(&b, " on %d", p.link)
	}
	return b.String()
}

func letters(flags byte) string {
	var b strings.Builder
	for i := range 8 {
		if flags&(1<<i) != 0 {
			b.WriteByte(flagLetters[i])
		}
	}
	if b.Len() == 0 {
		return "-"
	}
	return b.String()
}

func (s *segment) describe(b *strings.Builder, c *conn, sent bool) {
	seq, ack := int64(s.seq), int64(s.ack)
	if c != nil {
		seq, ack = c.relative(s, sent)
	}
	fmt.Fprintf(b, "%s seq %d", letters(s.flags), seq)
	if len(s.data) > 0 {
		fmt.Fprintf(b, " len %d", len(s.data))
	}
	if s.flags&flagACK != 0 {
		fmt.Fprintf(b, " ack %d", ack)
	}
	fmt.Fprintf(b, " win %d", s.win)
	if s.flags&flagURG != 0 {
		fmt.Fprintf(b, " urg %d", s.urg)
	}
	for _, o := range optionKeys {
		if v, ok := o.value(s); ok {
			fmt.Fprintf(b, " %s %d", o.name, v)
		}
	}
}

func (m *ripMessage) describe(b *strings.Builder) {
	switch m.command {
	case 1:
		b.WriteString("rip request")
	case 2:
		b.WriteString("rip response")
	default:
		fmt.Fprintf(b, "rip command %d", m.command)
	}
	for i, e := range m.entries {
		if i == 8 {
			fmt.Fprintf(b, " … (%d entries)", len(m.entries))
			break
		}
		fmt.Fprintf(b, " route %s cost %d", e.prefix, e.cost)
	}
}

// optionKeys are the keywords for TCP options, with the values that they have in a segment.
var optionKeys = []struct {
	name  string
	value func(s *segment) (int64, bool)
}{
	{"mss", number(2, 0, 2)},
	{"wscale", number(3, 0, 1)},
	{"sackok", number(4, 0, 0)},
	{"sackfrom", number(5, 0, 4)},
	{"sackto", number(5, 4, 4)},
	{"tsval", number(8, 0, 4)},
	{"tsecr", number(8, 4, 4)},
}

// number returns a function that reads a number from an option.
func number(kind byte, at, size int) func(s *segment) (int64, bool) {
	return func(s *segment) (int64, bool) {
		b, ok := s.option(kind)
		if !ok || len(b) < at+size {
			return 0, false
		}
		n := int64(0)
		for _, x := range b[at : at+size] {
			n = n<<8 | int64(x)
		}
		return n, true
	}
}
