package portforward_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// rawNeighbor is a node's neighbor that writes and reads whole packets.
type rawNeighbor struct {
	*testing.T
	*net.UDPConn
	node netip.AddrPort
}

var forwarded = netip.MustParseAddrPort("10.0.0.2:80")

// send sends a segment to the forwarded port.
func (r *rawNeighbor) send(from netip.AddrPort, flags tcp.Flags, seq, ack uint32, text string) {
	h := tcp.Header{Seq: seq, Ack: ack, Flags: flags, Window: 0xffff}
	segment := make([]byte, h.Size(), h.Size()+len(text))
	h.Put(segment, from.Port(), forwarded.Port())
	segment = append(segment, text...)
	sum := checksum.PseudoHeader(from.Addr(), forwarded.Addr(), ip.ProtoTCP, len(segment))
	binary.BigEndian.PutUint16(segment[16:], ^checksum.Fold(checksum.Sum(segment, sum)))
	header := ip.Header{TTL: 64, Protocol: ip.ProtoTCP, Src: from.Addr(), Dst: forwarded.Addr()}
	header.TotalLen = header.Size() + len(segment)
	_, err := r.WriteToUDPAddrPort(append(header.Append(nil), segment...), r.node)
	require.NoError(r, err)
}

// heard returns the next segment with these flags to a client, or false if none arrives in a while.
func (r *rawNeighbor) heard(to netip.AddrPort, flags tcp.Flags) (seq uint32, text string, ok bool) {
	require.NoError(r, r.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
	for packet := make([]byte, 1500); ; {
		n, err := r.Read(packet)
		if err != nil {
			return 0, "", false
		}
		dst, _ := netip.AddrFromSlice(packet[16:20])
		p := packet[20:n]
		if dst == to.Addr() && binary.BigEndian.Uint16(p[2:]) == to.Port() &&
			tcp.Flags(p[13])&flags == flags {
			return binary.BigEndian.Uint32(p[4:]), string(p[p[12]>>4*4:]), true
		}
	}
}

// page requests the service's page, and retransmits lost segments.
func (r *rawNeighbor) page(from netip.AddrPort) (text string) {
	var seq uint32
	deadline := time.Now().Add(20 * time.Second)
	for ok := false; !ok; {
		require.Less(r, time.Now(), deadline, "no SYN-ACK for %v", from)
		r.send(from, tcp.SYN, 0, 0, "")
		seq, _, ok = r.heard(from, tcp.SYN|tcp.ACK)
	}
	for text == "" {
		require.Less(r, time.Now(), deadline, "no page for %v", from)
		r.send(from, tcp.ACK|tcp.PSH, 1, seq+1, "?")
		_, text, _ = r.heard(from, tcp.ACK|tcp.PSH)
	}
	r.send(from, tcp.RST|tcp.ACK, 2, seq+1+uint32(len(text)), "")
	return text
}

// RFC 4987 §2: SYNs from sources that never answer do not block real clients of a forwarded port.
// The flows and connections that these SYNs use are bounded.
func TestAFloodOfSYNsAtAForwardedPort(t *testing.T) {
	t.Parallel()
	flood := 5_000
	if testenv.Long() {
		flood = 100_000
	}
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer socket.Close()
	port := testenv.FreePort(t)
	b := operatortest.Start(t, node.Config{}, testenv.ParseNode(t, "B", fmt.Sprintf(
		"interface if0 10.0.0.2/24 127.0.0.1:%d\nneighbor 10.0.0.1 at %v via if0\n"+
			"route 0.0.0.0/0 via 10.0.0.1\n", port, socket.LocalAddr())))
	r := &rawNeighbor{t, socket, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)}
	service := listenHere(t)
	go func() {
		for {
			c, err := service.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := io.ReadFull(c, make([]byte, 1)); err == nil {
					// if the write fails, the test finds the page missing
					_, _ = c.Write([]byte("a page"))
				}
			}()
		}
	}()
	fw, err := b.Forwards.Expose(control.Expose{Port: 80, To: service.Addr().String()})
	require.NoError(t, err)
	const honest = 10
	const eager = 64 // SYNs that a port forward answers before it sends SYN cookies
	for i := range flood {
		source := netip.AddrFrom4([4]byte{10, byte(1 + i>>16), byte(i >> 8), byte(i)})
		r.send(netip.AddrPortFrom(source, 4000), tcp.SYN, 0, 0, "")
		if i%(flood/honest) == flood/honest-1 {
			client := netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(5000+i/honest))
			assert.Equal(t, "a page", r.page(client), "after %d SYNs", i+1)
		}
	}
	is := fw.State()
	assert.GreaterOrEqual(t, is.Opened, uint64(eager+honest), "the flood has all places")
	assert.LessOrEqual(t, is.Open, eager+honest)
	assert.LessOrEqual(t, len(testenv.Ask(t, b, control.Sockets{})), 1+eager+honest)
}
