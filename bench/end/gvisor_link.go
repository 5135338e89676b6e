//go:build linux

package end

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/sync"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/stack/gro"

	"github.com/tidepool-net/tidepool/bench/datagram"
)

// gvisorLink returns the link of the spec: the tuned one, or gVisor's own.
func gvisorLink(spec *Spec) (stack.LinkEndpoint, error) {
	if spec.Stack == "gvisor-own" {
		return ownLink(spec)
	}
	s, err := datagram.Open(spec.Sides[0].UDP, spec.Sides[0].Peer, datagram.LongQueue)
	if err != nil {
		return nil, err
	}
	return &tunedLink{socket: s, mtu: uint32(spec.MTU)}, s.Coalesce()
}

// ownLink returns gVisor's own link for a file descriptor. The link uses recvmmsg.
func ownLink(spec *Spec) (stack.LinkEndpoint, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return nil, err
	}
	datagram.Enlarge(fd, datagram.LongQueue)
	side := spec.Sides[0]
	on := &unix.SockaddrInet4{Port: int(side.UDP.Port()), Addr: side.UDP.Addr().As4()}
	to := &unix.SockaddrInet4{Port: int(side.Peer.Port()), Addr: side.Peer.Addr().As4()}
	if err := unix.Bind(fd, on); err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, to); err != nil {
		return nil, err
	}
	return fdbased.New(&fdbased.Options{
		FDs: []int{fd}, MTU: uint32(spec.MTU), PacketDispatchMode: fdbased.RecvMMsg,
		GSOMaxSize: 65536, GVisorGSOEnabled: true,
	})
}

// tunedLink is the fastest link over UDP that gVisor can have. It takes 60 KB segments from the
// stack (host GSO), splits them into packets with headers and checksums, and sends each segment in
// one call. Received packets go through gVisor's GRO, and their checksums are not verified, which
// gives gVisor an advantage.
type tunedLink struct {
	socket *datagram.Socket
	mtu    uint32
	to     stack.NetworkDispatcher

	mu      sync.Mutex
	headers [datagram.MaxSegments * maxHeaders]byte
	pieces  []unix.Iovec
}

// maxHeaders is the length of an IP and a TCP header with options.
const maxHeaders = 120

// superSegment is the size of the stack's segments in bytes. The packets of one fit into one call.
const superSegment = 61440

func (l *tunedLink) MTU() uint32                      { return l.mtu }
func (l *tunedLink) SetMTU(uint32)                    {}
func (l *tunedLink) MaxHeaderLength() uint16          { return 0 }
func (l *tunedLink) LinkAddress() tcpip.LinkAddress   { return "" }
func (l *tunedLink) SetLinkAddress(tcpip.LinkAddress) {}
func (l *tunedLink) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityRXChecksumOffload
}

func (l *tunedLink) Attach(d stack.NetworkDispatcher) {
	if d != nil {
		l.to = d
		go l.receive()
	}
}
func (l *tunedLink) IsAttached() bool                        { return l.to != nil }
func (l *tunedLink) Wait()                                   {}
func (l *tunedLink) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }
func (l *tunedLink) AddHeader(*stack.PacketBuffer)           {}
func (l *tunedLink) ParseHeader(*stack.PacketBuffer) bool    { return true }
func (l *tunedLink) Close()                                  {}
func (l *tunedLink) SetOnCloseAction(func())                 {}
func (l *tunedLink) GSOMaxSize() uint32                      { return superSegment }
func (l *tunedLink) SupportedGSO() stack.SupportedGSO        { return stack.HostGSOSupported }

func (l *tunedLink) WritePackets(list stack.PacketBufferList) (int, tcpip.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, p := range list.AsSlice() {
		v := p.ToView()
		err := l.send(v.AsSlice(), int(p.GSOOptions.MSS), p.GSOOptions.Type)
		v.Release()
		if err != nil {
			return n, &tcpip.ErrAborted{}
		}
		n++
	}
	return n, nil
}

// send sends one packet of the stack as its segments.
func (l *tunedLink) send(packet []byte, mss int, kind stack.GSOType) error {
	l.pieces = l.pieces[:0]
	if kind == stack.GSONone || mss == 0 {
		l.pieces = append(l.pieces, datagram.Piece(packet))
		return l.socket.Send(l.pieces, len(packet), len(packet))
	}
	ipLen := int(packet[0]&15) * 4
	if packet[0]>>4 == header.IPv6Version {
		ipLen = header.IPv6MinimumSize
	}
	headLen := ipLen + int(packet[ipLen+12]>>4)*4
	text := packet[headLen:]
	for at, i := 0, 0; at < len(text) || i == 0; at, i = at+mss, i+1 {
		part := text[at:min(at+mss, len(text))]
		head := l.headers[i*maxHeaders:][:headLen]
		copy(head, packet)
		last := at+mss >= len(text)
		segment(head, part, ipLen, at, i, last)
		l.pieces = append(l.pieces, datagram.Piece(head))
		if len(part) > 0 {
			l.pieces = append(l.pieces, datagram.Piece(part))
		}
	}
	total := len(text) + len(l.pieces)/2*headLen
	return l.socket.Send(l.pieces, total, headLen+mss)
}

// segment turns the headers of the whole packet into those of one segment.
func segment(head, text []byte, ipLen, at, number int, last bool) {
	var src, dst tcpip.Address
	if head[0]>>4 == header.IPv6Version {
		ip := header.IPv6(head)
		ip.SetPayloadLength(uint16(len(head) - ipLen + len(text)))
		src, dst = ip.SourceAddress(), ip.DestinationAddress()
	} else {
		ip := header.IPv4(head)
		ip.SetTotalLength(uint16(len(head) + len(text)))
		ip.SetID(ip.ID() + uint16(number))
		ip.SetChecksum(0)
		ip.SetChecksum(^ip.CalculateChecksum())
		src, dst = ip.SourceAddress(), ip.DestinationAddress()
	}
	t := head[ipLen:]
	binary.BigEndian.PutUint32(t[4:], binary.BigEndian.Uint32(t[4:])+uint32(at))
	if !last {
		t[13] &^= byte(header.TCPFlagPsh | header.TCPFlagFin)
	}
	t[16], t[17] = 0, 0
	sum := header.PseudoHeaderChecksum(header.TCPProtocolNumber,
		src, dst, uint16(len(t)+len(text)))
	sum = checksum.Checksum(t, sum) // this works because the header's length is even
	binary.BigEndian.PutUint16(t[16:], ^checksum.Checksum(text, sum))
}

// receive passes received packets through gVisor's GRO to the stack.
func (l *tunedLink) receive() {
	batch := l.socket.NewBatch(8)
	var g gro.GRO
	g.Init(true)
	g.Dispatcher = l.to
	for {
		list, err := batch.Receive()
		if err != nil {
			return
		}
		for _, r := range list {
			for data := r.Data; len(data) > 0; {
				n := min(r.Size, len(data))
				p := stack.NewPacketBuffer(stack.PacketBufferOptions{
					Payload: buffer.MakeWithData(data[:n]),
				})
				p.NetworkProtocolNumber = ipv4.ProtocolNumber
				if data[0]>>4 == header.IPv6Version {
					p.NetworkProtocolNumber = ipv6.ProtocolNumber
				}
				g.Enqueue(p)
				p.DecRef()
				data = data[n:]
			}
		}
		g.Flush()
	}
}
