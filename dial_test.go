package tidepool_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// A Dial to an invalid address sends nothing.
func TestInvalidDialSendsNothing(t *testing.T) {
	wire, end := tidepool.Pipe(0)
	n := open(t, host(tidepool.Config{}, "10.0.0.1/24", "10.0.0.2", end))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := n.DialContext(ctx, "tcp", "10.0.0.2:80")
	require.ErrorIs(t, err, context.Canceled)
	_, err = n.Dial("tcp", "127.0.0.1:80")
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "a closed port of the node itself")
	for _, no := range []string{
		"224.0.0.1", "255.255.255.255", "0.1.2.3", "240.0.0.1", "10.0.0.255", "10.0.0.0",
	} {
		_, err := n.Dial("tcp", no+":80")
		require.ErrorIs(t, err, syscall.ENETUNREACH, no)
	}
	u, err := n.Dial("udp", "10.0.0.2:53")
	require.NoError(t, err)
	_, err = u.Write([]byte("first"))
	require.NoError(t, err)
	packet := make([]byte, 1500)
	_, err = wire.Read(packet)
	require.NoError(t, err)
	assert.Equal(t, byte(syscall.IPPROTO_UDP), packet[9], "no SYN was sent")
}

// RFC 1122 §4.2.3.9: a port or protocol unreachable about a SYN fails the dial at once. Other ICMP
// errors appear in the error of a dial that times out.
func TestDialAndICMPErrors(t *testing.T) {
	for _, row := range []struct {
		typ   icmp.Type
		code  uint8
		is    []error
		isNot error
	}{
		{3, 2, []error{syscall.ECONNREFUSED}, syscall.ETIMEDOUT},
		{3, 3, []error{syscall.ECONNREFUSED}, syscall.ETIMEDOUT},
		{3, 0, []error{syscall.ETIMEDOUT, syscall.ENETUNREACH}, syscall.EHOSTUNREACH},
		{3, 1, []error{syscall.ETIMEDOUT, syscall.EHOSTUNREACH}, syscall.ENETUNREACH},
		{3, 13, []error{syscall.ETIMEDOUT, syscall.EHOSTUNREACH}, syscall.ECONNREFUSED},
		{11, 0, []error{syscall.ETIMEDOUT, syscall.EHOSTUNREACH}, syscall.ECONNREFUSED},
		{12, 0, []error{syscall.ETIMEDOUT, syscall.EPROTO}, syscall.ECONNREFUSED},
		{icmp.TypeUnreachable6, 4, []error{syscall.ECONNREFUSED}, syscall.ETIMEDOUT},
		{icmp.TypeUnreachable6, 0, []error{syscall.ETIMEDOUT, syscall.ENETUNREACH}, syscall.EHOSTUNREACH},
		{icmp.TypeUnreachable6, 1, []error{syscall.ETIMEDOUT, syscall.EACCES}, syscall.ECONNREFUSED},
		{icmp.TypeUnreachable6, 3, []error{syscall.ETIMEDOUT, syscall.EHOSTUNREACH}, syscall.ENETUNREACH},
		{icmp.TypeTimeExceeded6, 0, []error{syscall.ETIMEDOUT, syscall.EHOSTUNREACH}, syscall.ECONNREFUSED},
		{icmp.TypeParameterProblem6, 1, []error{syscall.ETIMEDOUT, syscall.EPROTO}, syscall.ECONNREFUSED},
	} {
		var clock tidepool.Clock
		wire, end := tidepool.Pipe(0)
		h, near := ip.Header{Protocol: ip.ProtoICMP, Src: addr("10.0.0.2")}, "10.0.0.1/24"
		if row.typ.Is6() {
			h, near = ip.Header{Protocol: ip.ProtoICMPv6, Src: addr("2001:db8::2")}, "2001:db8::1/64"
		}
		n := open(t, host(tidepool.Config{Clock: &clock}, near, "", end))
		failed := make(chan error)
		go func() {
			_, err := n.Dial("tcp", netip.AddrPortFrom(h.Src, 80).String())
			failed <- err
		}()
		syn := make([]byte, 1500)
		k, err := wire.Read(syn)
		require.NoError(t, err)
		body := icmp.Error(nil, h.Src, icmp.ReportError{Type: row.typ, Code: row.code}, 0, syn[:k], 576)
		h.TTL, h.Dst = 64, prefix(near).Addr()
		h.TotalLen = h.Size() + len(body)
		_, err = wire.Write(append(h.Append(nil), body...))
		require.NoError(t, err)
		late := errors.Is(row.is[0], syscall.ETIMEDOUT)
		if late {
			clock.Advance(5 * time.Minute)
		}
		err = <-failed
		for _, is := range row.is {
			require.ErrorIs(t, err, is)
		}
		require.NotErrorIs(t, err, row.isNot)
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		assert.Equal(t, late, timeout.Timeout(), err.Error())
	}
}

// RFC 9293 §3.7.1: a peer that sends no MSS option receives segments of 536 bytes, over IPv6 of 1220,
// and our SYN-ACK carries our MSS. The second write is sent at once, as a full segment (RFC 9293
// §3.7.4).
func TestPeerWithoutMSSOption(t *testing.T) {
	for _, row := range []struct {
		near, far string
		mss, ours int
	}{
		{"10.0.0.1/24", "10.0.0.2", 536, 1360},
		{"2001:db8::1/64", "2001:db8::2", 1220, 1340},
	} {
		wire, end := tidepool.Pipe(1500)
		n := open(t, host(tidepool.Config{}, row.near, "", end))
		l, err := n.Listen("tcp", ":80")
		require.NoError(t, err)
		header := ip.Header{TTL: 64, Protocol: ip.ProtoTCP, Src: addr(row.far), Dst: prefix(row.near).Addr()}
		header.TotalLen = header.Size() + tcp.HeaderSize
		say := func(flags tcp.Flags, seq, ack uint32) {
			b := make([]byte, tcp.HeaderSize)
			segment := tcp.Header{Seq: seq, Ack: ack, Flags: flags, Window: 9000}
			segment.Put(b, 4000, 80)
			sum := checksum.PseudoHeader(header.Src, header.Dst, ip.ProtoTCP, len(b))
			binary.BigEndian.PutUint16(b[16:], ^checksum.Fold(checksum.Sum(b, sum)))
			_, err := wire.Write(append(header.Append(nil), b...))
			require.NoError(t, err)
		}
		packet := make([]byte, 2000)
		say(tcp.SYN, 0, 0)
		k, err := wire.Read(packet)
		require.NoError(t, err)
		segment := packet[header.Size():]
		options := segment[tcp.HeaderSize : k-header.Size()]
		assert.Equal(t, []byte{2, 4, byte(row.ours >> 8), byte(row.ours)}, options, "MSS and nothing else")
		say(tcp.ACK, 1, binary.BigEndian.Uint32(segment[4:])+1)
		c, err := l.Accept()
		require.NoError(t, err)
		_, err = c.Write(make([]byte, 2*row.mss))
		require.NoError(t, err)
		for range 2 {
			k, err = wire.Read(packet)
			require.NoError(t, err)
			assert.Equal(t, header.Size()+tcp.HeaderSize+row.mss, k)
		}
	}
}

func TestListenErrors(t *testing.T) {
	a, _ := pair(t, tidepool.Config{})
	_, err := a.Listen("tcp", "10.9.9.9:80")
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	l, err := a.ListenTCP(netip.AddrPortFrom(netip.Addr{}, 80))
	require.NoError(t, err)
	_, err = a.Listen("tcp", "10.0.0.1:80")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.NoError(t, l.Close())
	err = l.Close()
	require.ErrorIs(t, err, net.ErrClosed)
	assert.ErrorContains(t, err, "close tcp")
}

// Open's errors name the field.
func TestOpenErrorsNameTheField(t *testing.T) {
	tcp := func(change func(*tidepool.TCP)) func(*tidepool.Config) {
		return func(c *tidepool.Config) { change(&c.TCP) }
	}
	face := func(address string) func(*tidepool.Config) {
		return func(c *tidepool.Config) { c.Interfaces[0].Addr = prefix(address) }
	}
	neighbor := func(a netip.Addr) func(*tidepool.Config) {
		return func(c *tidepool.Config) {
			c.Interfaces[0].Neighbors = []tidepool.Neighbor{{Addr: a}}
		}
	}
	via := func(gateway string) func(*tidepool.Config) {
		return func(c *tidepool.Config) {
			c.Routes = []tidepool.Route{{Prefix: prefix("10.7.0.0/16"), Via: addr(gateway)}}
		}
	}
	named := func(a netip.Addr) func(*tidepool.Config) {
		return func(c *tidepool.Config) { c.Hosts = map[string]netip.Addr{"b": a} }
	}
	for say, change := range map[string]func(*tidepool.Config){
		"interface if0: Addr 10.0.0.0/24 is the address of the subnet 10.0.0.0/24 itself": face("10.0.0.0/24"),
		"interface if0: Addr 10.0.0.255/24 is the broadcast address of 10.0.0.0/24":       face("10.0.0.255/24"),
		"interface if0: Addr 10.0.3.255/22 is the broadcast address of 10.0.0.0/22":       face("10.0.3.255/22"),
		"interface if0: Addr 224.0.0.5/24 is a multicast address":                         face("224.0.0.5/24"),
		"interface if0: neighbor 10.0.1.2 is not in the link's prefix":                    neighbor(addr("10.0.1.2")),
		"interface if0: neighbor 10.0.0.1 is the interface itself":                        neighbor(addr("10.0.0.1")),
		"route 10.7.0.0/16: next hop 10.0.0.1 is the node itself":                         via("10.0.0.1"),
		"route 10.7.0.0/16: next hop 10.1.0.1 is not in an interface's network":           via("10.1.0.1"),
		`Hosts["b"]`: named(netip.Addr{}),

		"TCP.InitialWindow -3: must be 1 to 65536": tcp(func(c *tidepool.TCP) { c.InitialWindow = -3 }),
		"TCP.InitialWindow 109951162":              tcp(func(c *tidepool.TCP) { c.InitialWindow = 1 << 40 }),
		"TCP.SynRetries 109951162":                 tcp(func(c *tidepool.TCP) { c.SynRetries = 1 << 40 }),
		"TCP.DataRetries -1":                       tcp(func(c *tidepool.TCP) { c.DataRetries = -1 }),
		"TCP.DelayedAck 500ms":                     tcp(func(c *tidepool.TCP) { c.DelayedAck = time.Second / 2 }),
		"TCP.RTOMax 1ms: must be at least RTOMin, 1s": tcp(func(c *tidepool.TCP) {
			c.RTOMin, c.RTOMax = time.Second, time.Millisecond
		}),
		"TCP.RTOMin -1s":            tcp(func(c *tidepool.TCP) { c.RTOMin = -time.Second }),
		"TCP.ReadBuffer 3":          tcp(func(c *tidepool.TCP) { c.ReadBuffer = 3 }),
		"TCP.WriteBuffer 109951162": tcp(func(c *tidepool.TCP) { c.WriteBuffer = 1 << 40 }),
	} {
		_, end := tidepool.Pipe(0)
		cfg := host(tidepool.Config{}, "10.0.0.1/24", "", end)
		change(&cfg)
		_, err := tidepool.Open(cfg)
		require.ErrorContains(t, err, "tidepool: bad configuration: "+say)
	}
	_, end := tidepool.Pipe(0)
	open(t, host(tidepool.Config{}, "10.0.0.0/31", "", end))
}

func TestSettersRejectWhatOpenRejects(t *testing.T) {
	a, b := pair(t, tidepool.Config{})
	client, _ := dial(t, a, b, "10.0.0.2:80")
	for _, size := range []int{0, -1, 1 << 40} {
		require.ErrorIs(t, client.SetReadBuffer(size), syscall.EINVAL)
		require.ErrorIs(t, client.SetWriteBuffer(size), syscall.EINVAL)
	}
	require.NoError(t, client.SetReadBuffer(1<<16))
	require.NoError(t, client.SetWriteBuffer(1<<16))
	require.ErrorIs(t, a.SetLoss(0.1), errors.ErrUnsupported)
}

// RFC 9293 §3.10.1: an active OPEN may specify the local socket, and "connection already exists" is
// an error.
func TestDialerLocalAddr(t *testing.T) {
	a, _, c := line(t, tidepool.Config{})
	l, err := a.ListenTCP(netip.MustParseAddrPort("10.0.0.1:80"))
	require.NoError(t, err)
	d := tidepool.Dialer{Node: c, LocalAddr: netip.MustParseAddrPort("10.1.0.2:4321")}
	conn, err := d.Dial("tcp", "10.0.0.1:80")
	require.NoError(t, err)
	assert.Equal(t, "10.1.0.2:4321", conn.LocalAddr().String())
	accepted, err := l.Accept()
	require.NoError(t, err)
	assert.Equal(t, "10.1.0.2:4321", accepted.RemoteAddr().String())

	_, err = d.Dial("tcp", "10.0.0.1:80")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	assert.ErrorContains(t, err, "dial tcp 10.1.0.2:4321->10.0.0.1:80: ")
	other, err := a.Listen("tcp", ":81")
	require.NoError(t, err)
	second, err := d.Dial("tcp", "10.0.0.1:81")
	require.NoError(t, err, "another connection from the same port")
	require.NoError(t, second.Close())
	require.NoError(t, other.Close())

	require.NoError(t, conn.Close())
	_, err = accepted.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, accepted.Close())
	waits := func() bool {
		info, err := conn.(*tidepool.Conn).Info()
		return err == nil && info.State == "TIME_WAIT"
	}
	require.Eventually(t, waits, patience, time.Millisecond)
	_, err = d.Dial("tcp", "10.0.0.1:80")
	require.ErrorIs(t, err, syscall.EADDRINUSE, "in TIME-WAIT")

	d.LocalAddr = netip.MustParseAddrPort("10.0.0.1:0")
	_, err = d.Dial("tcp", "10.0.0.1:80")
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	d.LocalAddr = netip.MustParseAddrPort("[::1]:9")
	_, err = d.Dial("tcp", "10.0.0.1:80")
	require.ErrorContains(t, err, "address [::1]:9: no suitable address found")
	mine, err := c.Listen("tcp", "10.1.0.2:7")
	require.NoError(t, err)
	d.LocalAddr = netip.AddrPortFrom(netip.Addr{}, 7)
	_, err = d.Dial("tcp", "10.0.0.1:80")
	require.ErrorIs(t, err, syscall.EADDRINUSE, "a listener's")
	require.NoError(t, mine.Close())
	conn, err = d.DialContext(t.Context(), "tcp4", "10.0.0.1:80")
	require.NoError(t, err)
	assert.Equal(t, "10.1.0.2:7", conn.LocalAddr().String())
	require.NoError(t, conn.Close())
	require.NoError(t, l.Close())
}

// A router may use any of its addresses as the source.
func TestDialerLocalAddrOfRouter(t *testing.T) {
	a, router, _ := line(t, tidepool.Config{})
	l, err := a.Listen("tcp", ":80")
	require.NoError(t, err)
	d := tidepool.Dialer{Node: router}
	for _, from := range []string{"10.0.0.2", "10.1.0.1"} {
		d.LocalAddr = netip.AddrPortFrom(addr(from), 0)
		conn, err := d.Dial("tcp", "10.0.0.1:80")
		require.NoError(t, err)
		accepted, err := l.Accept()
		require.NoError(t, err)
		assert.Equal(t, from, accepted.RemoteAddr().(*net.TCPAddr).IP.String())
		require.NoError(t, conn.Close())
		require.NoError(t, accepted.Close())
		u, err := d.DialUDP(netip.MustParseAddrPort("10.0.0.1:53"))
		require.NoError(t, err)
		assert.Equal(t, from, u.LocalAddr().(*net.UDPAddr).IP.String())
		require.NoError(t, u.Close())
	}
	require.NoError(t, l.Close())
}

func TestDialerUDP(t *testing.T) {
	a, b := pair(t, tidepool.Config{})
	d := tidepool.Dialer{Node: a, LocalAddr: netip.MustParseAddrPort("10.0.0.1:5353")}
	u, err := d.Dial("udp", "10.0.0.2:53")
	require.NoError(t, err)
	assert.Equal(t, "10.0.0.1:5353", u.LocalAddr().String())
	_, err = d.Dial("udp", "10.0.0.2:54")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	assert.ErrorContains(t, err, "dial udp 10.0.0.1:5353->10.0.0.2:54: ")
	_, err = a.ListenPacket("udp", ":5353")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	server, err := b.ListenPacket("udp", ":53")
	require.NoError(t, err)
	_, err = u.Write([]byte("who"))
	require.NoError(t, err)
	p := make([]byte, 10)
	n, from, err := server.ReadFrom(p)
	require.NoError(t, err)
	assert.Equal(t, "who", string(p[:n]))
	assert.Equal(t, "10.0.0.1:5353", from.String())
	require.NoError(t, u.Close())
	d.LocalAddr = netip.MustParseAddrPort("10.0.0.9:0")
	_, err = d.Dial("udp", "10.0.0.2:53")
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	require.NoError(t, server.Close())
}

// The timeout runs on the node's clock.
func TestDialerTimeout(t *testing.T) {
	var clock tidepool.Clock
	x, wire := tidepool.Pipe(0)
	n := open(t, host(tidepool.Config{Clock: &clock}, "10.0.0.1/24", "", x))
	done := make(chan error, 1)
	go func() {
		d := tidepool.Dialer{Node: n, Timeout: 2 * time.Second}
		_, err := d.Dial("tcp", "10.0.0.2:80")
		done <- err
	}()
	_, err := wire.Read(make([]byte, 1500)) // waits until the goroutine has sent its SYN
	require.NoError(t, err)
	clock.Advance(2*time.Second - 1)
	select {
	case err := <-done:
		t.Fatal("early:", err)
	default:
	}
	clock.Advance(1)
	err = <-done
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	assert.Equal(t, "dial tcp 10.0.0.2:80: i/o timeout", err.Error())
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	assert.True(t, timeout.Timeout())
	_, err = (&tidepool.Dialer{Timeout: time.Second}).Dial("tcp", "10.0.0.2:80")
	require.ErrorIs(t, err, net.ErrClosed, "no node")
}
