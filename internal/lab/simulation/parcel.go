package simulation

import (
	"encoding/binary"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// parcel is what the headers of a packet tell of it.
type parcel struct {
	flow int  // -1: nobody's
	from Side // that it was sent on
	size int  // bytes of IP packet
	data int  // bytes of payload
	// bare: it is TCP's, has no payload, and does nothing but acknowledge.
	bare bool
}

// What IP headers and a TCP header have where.
const (
	ip6Header   = 40
	ip6Payload  = 4
	ip6Next     = 6
	ip6Source   = 8
	ourNetwork6 = 0x20010db8 // the prefix for documentation
	ipMinimum   = 20
	ipProtocol  = 9
	ipSource    = 12
	protocolTCP = 6
	protocolUDP = 17
	udpHeader   = 8
	tcpOffset   = 12
	tcpFlags    = 13
	tcpMinimum  = 20
	flagFIN     = 1
	flagSYN     = 2
	flagRST     = 4
	ourNetwork  = 10
)

// parse reads a packet, or as much of it as there is, that some flow of n sent. It may have been
// damaged.
func parse(packet []byte, n int, v6 bool) parcel {
	p := parcel{flow: -1, size: len(packet)}
	var head int
	var protocol byte
	var from []byte // what addresses have behind our network
	switch {
	case v6:
		if len(packet) < ip6Header ||
			binary.BigEndian.Uint32(packet[ip6Source:]) != ourNetwork6 {
			return p
		}
		head, protocol, from = ip6Header, packet[ip6Next], packet[ip6Source+4:]
		p.size = head + int(binary.BigEndian.Uint16(packet[ip6Payload:]))
	case len(packet) < ipMinimum || packet[ipSource] != ourNetwork:
		return p
	default:
		head, protocol, from = int(packet[0]&0xf)*4, packet[ipProtocol], packet[ipSource+1:]
		p.size = int(binary.BigEndian.Uint16(packet[2:]))
	}
	p.from = Side(from[0] & byte(Right))
	flow := int(from[0]&^byte(Right))<<8 | int(from[1])
	if flow >= n {
		return p
	}
	p.flow = flow
	switch protocol {
	case protocolTCP:
		if head+tcpMinimum > len(packet) {
			break
		}
		t := packet[head:]
		p.data = p.size - head - int(t[tcpOffset]>>4)*4
		p.bare = p.data == 0 && t[tcpFlags]&(flagFIN|flagSYN|flagRST) == 0
	case protocolUDP:
		p.data = p.size - head - udpHeader
	}
	return p
}

// Tally is what a flow's packets at the bottleneck come to.
type Tally struct {
	Sent, Data, Bare, Dropped uint64 // packets; Bare ones only acknowledge
	// Crossed is how many bytes of data packets it has sent since the warm-up.
	Crossed uint64

	to Side // that the data goes to
}

// Result adds how many packets of the flow there were.
func (t *Tally) Result(f *plan.Flow, v result.Values) {
	v[result.Sent] = float64(t.Sent)
	v[result.Drops] = float64(t.Dropped)
	if f.Protocol == plan.TCP {
		v[result.DataSent] = float64(t.Data)
		v[result.AcksSent] = float64(t.Bare)
	}
}

func (t *Tally) count(p *parcel) {
	t.Sent++
	switch {
	case p.data > 0:
		t.Data++
	case p.bare:
		t.Bare++
	}
}

func (t *Tally) crossed(p *parcel) {
	if p.data > 0 && p.from != t.to {
		t.Crossed += uint64(p.size)
	}
}
