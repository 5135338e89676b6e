package simulation

import (
	"encoding/binary"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// packetInfo has the fields of a packet's headers that the measurements need.
type packetInfo struct {
	flow    int  // -1: the packet belongs to no flow
	from    Side // the side that sent the packet
	size    int  // size of the IP packet in bytes
	data    int  // payload in bytes
	pureAck bool
}

// These are offsets, sizes and values in the headers of IP, TCP and UDP.
const (
	ip6Header   = 40
	ip6Payload  = 4
	ip6Next     = 6
	ip6Source   = 8
	ourNetwork6 = 0x20010db8 // documentation prefix
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

// parse parses the headers of a packet of one of n flows. The packet may be truncated or corrupted.
func parse(packet []byte, n int, v6 bool) packetInfo {
	p := packetInfo{flow: -1, size: len(packet)}
	var head int
	var protocol byte
	var from []byte // bits of the source address after the prefix
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
		p.pureAck = p.data == 0 && t[tcpFlags]&(flagFIN|flagSYN|flagRST) == 0
	case protocolUDP:
		p.data = p.size - head - udpHeader
	}
	return p
}

// Tally counts a flow's packets at the bottleneck.
type Tally struct {
	Sent, Data, PureAcks, Dropped uint64 // numbers of packets
	// Crossed is the number of bytes of data packets that crossed the bottleneck since the warm-up.
	Crossed uint64

	to Side // side that receives the data
}

// Result adds the packet counts of the flow.
func (t *Tally) Result(f *plan.Flow, v result.Values) {
	v[result.Sent] = float64(t.Sent)
	v[result.Drops] = float64(t.Dropped)
	if f.Protocol == plan.TCP {
		v[result.DataSent] = float64(t.Data)
		v[result.AcksSent] = float64(t.PureAcks)
	}
}

func (t *Tally) count(p *packetInfo) {
	t.Sent++
	switch {
	case p.data > 0:
		t.Data++
	case p.pureAck:
		t.PureAcks++
	}
}

func (t *Tally) crossed(p *packetInfo) {
	if p.data > 0 && p.from != t.to {
		t.Crossed += uint64(p.size)
	}
}
