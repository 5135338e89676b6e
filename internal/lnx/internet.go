package lnx

import (
	"bytes"
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/spell"
)

// ICMP is what ICMP answers. Zero is what a good host does.
type ICMP struct {
	// Rate is how many errors may leave a second; 0: 1000. Negative: no limit.
	Rate int
	// Burst is how many may leave at once; 0: 50.
	Burst int
	// NoErrors sends no error messages.
	NoErrors bool
	// NoEcho leaves pings unanswered, and NoTimestamp timestamp requests.
	NoEcho, NoTimestamp bool
	// EchoBroadcast answers pings to all on a link as well.
	EchoBroadcast bool
}

// IP is which packets IP takes.
type IP struct {
	// ReversePath is what a packet's source needs: "loose" a route, "strict" one that
	// leads out where the packet came in; empty: nothing.
	ReversePath string
	// DirectedBroadcast has a router pass on what is for all on a link of its own.
	DirectedBroadcast bool
	// ReassemblyTimeout is how long the rest of a datagram is waited for that comes in
	// fragments, and ReassemblyBytes the memory for all of them; 0: 20 s and 4 MiB.
	ReassemblyTimeout time.Duration
	ReassemblyBytes   int
}

// The bounds of reassembly: RFC 1122 §3.3.2 has two minutes at the most; the least is
// memory for two datagrams of any length.
const (
	maxReassemblyMillis = 120_000
	minReassemblyBytes  = 256 << 10
	maxReassemblyBytes  = 1 << 30
)

// maxICMP bounds both numbers of ICMP's limit.
const maxICMP = 1_000_000

func (p *parser) readICMPRate(l line) {
	if l.words[2].text == "off" {
		if p.once("icmp rate", l.words[2]) {
			p.cfg.ICMP.Rate = -1
		}
		return
	}
	n, ok := p.number(l.words[2], 1, maxICMP, " messages a second, or off")
	if ok && p.once("icmp rate", l.words[2]) {
		p.cfg.ICMP.Rate = n
	}
}

func (p *parser) readICMPBurst(l line) {
	n, ok := p.number(l.words[2], 1, maxICMP, " messages")
	if ok && p.once("icmp burst", l.words[2]) {
		p.cfg.ICMP.Burst = n
	}
}

func (p *parser) readICMPErrors(l line) {
	p.cfg.ICMP.NoErrors = !p.onOff(l, !p.cfg.ICMP.NoErrors)
}

func (p *parser) readEcho(l line) {
	p.cfg.ICMP.NoEcho = !p.onOff(l, !p.cfg.ICMP.NoEcho)
}

func (p *parser) readTimestamp(l line) {
	p.cfg.ICMP.NoTimestamp = !p.onOff(l, !p.cfg.ICMP.NoTimestamp)
}

func (p *parser) readEchoBroadcast(l line) {
	p.cfg.ICMP.EchoBroadcast = p.onOff(l, p.cfg.ICMP.EchoBroadcast)
}

func (p *parser) readDirectedBroadcast(l line) {
	p.cfg.IP.DirectedBroadcast = p.onOff(l, p.cfg.IP.DirectedBroadcast)
}

// onOff reads the switch that is the line's third word, and returns how it stands: as it
// was if the line is wrong.
func (p *parser) onOff(l line, was bool) bool {
	w := l.words[2]
	if w.text != "on" && w.text != "off" {
		p.bad(w, "not a switch", "on or off")
		return was
	}
	if !p.once(l.words[0].text+" "+l.words[1].text, w) {
		return was
	}
	return w.text == "on"
}

func (p *parser) readReversePath(l line) {
	w := l.words[2]
	switch w.text {
	case "off", "loose", "strict":
		if p.once("ip reverse-path", w) && w.text != "off" {
			p.cfg.IP.ReversePath = w.text
		}
	default:
		modes := []string{"off", "loose", "strict"}
		p.bad(w, "no mode"+spell.DidYouMean(w.text, modes), oneOf(modes))
	}
}

func (p *parser) readReassemblyTimeout(l line) {
	n, ok := p.number(l.words[2], 1, maxReassemblyMillis, " milliseconds")
	if ok && p.once("ip reassembly-timeout", l.words[2]) {
		p.cfg.IP.ReassemblyTimeout = time.Duration(n) * time.Millisecond
	}
}

func (p *parser) readReassemblyBytes(l line) {
	n, ok := p.number(l.words[2], minReassemblyBytes, maxReassemblyBytes, " bytes")
	if ok && p.once("ip reassembly-bytes", l.words[2]) {
		p.cfg.IP.ReassemblyBytes = n
	}
}

// format leaves out what is the default.
func (c ICMP) format(b *bytes.Buffer) {
	if c.Rate < 0 {
		b.WriteString("icmp rate off\n")
	} else if c.Rate > 0 {
		fmt.Fprintf(b, "icmp rate %d\n", c.Rate)
	}
	if c.Burst > 0 {
		fmt.Fprintf(b, "icmp burst %d\n", c.Burst)
	}
	if c.NoErrors {
		b.WriteString("icmp errors off\n")
	}
	if c.NoEcho {
		b.WriteString("icmp echo off\n")
	}
	if c.EchoBroadcast {
		b.WriteString("icmp echo-broadcast on\n")
	}
	if c.NoTimestamp {
		b.WriteString("icmp timestamp off\n")
	}
}

// format leaves out what is the default.
func (c IP) format(b *bytes.Buffer) {
	if c.ReversePath != "" {
		fmt.Fprintf(b, "ip reverse-path %s\n", c.ReversePath)
	}
	if c.DirectedBroadcast {
		b.WriteString("ip directed-broadcast on\n")
	}
	if c.ReassemblyTimeout > 0 {
		fmt.Fprintf(b, "ip reassembly-timeout %d\n", c.ReassemblyTimeout.Milliseconds())
	}
	if c.ReassemblyBytes > 0 {
		fmt.Fprintf(b, "ip reassembly-bytes %d\n", c.ReassemblyBytes)
	}
}
