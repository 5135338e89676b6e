package portforward

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Gateway connects the hosts behind a node to this machine's network.
type Gateway struct {
	// Addrs are the node's addresses, which stand for this machine's loopback.
	Addrs []netip.Addr
	// DNS is the machine's name server. It receives packets to port 53 of Addrs. If invalid, these
	// packets go to the machine's loopback.
	DNS netip.AddrPort
	// NoEcho is called once with ErrNoEcho if this user may not send echo requests. If NoEcho is
	// nil, the failure is only counted.
	NoEcho func(error)
}

// dnsPort is the port of DNS (RFC 1035 §4.2).
const dnsPort = 53

// Gateway makes the node the gateway to this machine's network: it connects every TCP connection,
// UDP flow and ICMP echo request to its destination as a program of this machine would.
func (s *Set) Gateway(g Gateway) (*Forward, error) {
	fw := s.newForward(control.DoorGateway, "tcp+udp", "every address", "this machine's network")
	fw.addr = &net.IPAddr{IP: net.IPv4zero}
	return s.takeAll(fw, g.route, fw.echo(g.NoEcho))
}

func (g Gateway) route(to netip.AddrPort) (netip.AddrPort, bool) {
	switch {
	case !slices.Contains(g.Addrs, to.Addr()):
		return to, true
	case to.Port() == dnsPort && g.DNS.IsValid():
		return g.DNS, true
	case to.Addr().Is6():
		return netip.AddrPortFrom(netip.IPv6Loopback(), to.Port()), true
	}
	return netip.AddrPortFrom(loopback, to.Port()), true
}

// unreachable reports whether a connection failed because there is no path. Waiting does not help
// then.
func unreachable(err error) bool {
	return errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH) ||
		errors.Is(err, syscall.EADDRNOTAVAIL)
}

// echoTimeout is how long an echo request waits for its reply.
const echoTimeout = 10 * time.Second

// ErrNoEcho means that this user may not send ICMP echo requests.
var ErrNoEcho = errors.New("ping needs a permission of this machine: " +
	"sudo sysctl -w net.ipv4.ping_group_range='0 2147483647'")

// echo returns a function that sends an echo request on the machine's network and waits for the
// reply.
func (fw *Forward) echo(noEcho func(error)) func(*stack.Echo) bool {
	var once sync.Once
	return func(e *stack.Echo) bool {
		f, ok := fw.enter(fmt.Sprintf("echo %v to %v", e.Src, e.Dst), func() {})
		if !ok {
			return false
		}
		err := exchangeEcho(fw.flowing, e)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			f.leave(nil) // the client notices that no reply arrives
			return false
		case errors.Is(err, ErrNoEcho) && noEcho != nil:
			once.Do(func() { noEcho(err) })
		}
		f.leave(err)
		return err == nil
	}
}

// exchangeEcho sends one echo request and returns when its reply has come. A datagram socket for
// ICMP has its own identifier, and gets only replies with it. A raw socket, which only root may
// open, gets all replies.
func exchangeEcho(ctx context.Context, e *stack.Echo) error {
	conn, raw, err := openEcho(e.Dst)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(0, 1)) })()
	if err := conn.SetDeadline(time.Now().Add(echoTimeout)); err != nil {
		return err
	}
	id := uint16(rand.Uint32())
	m := icmp.Message{Rest: e.Rest, Body: e.Body}
	var reply icmp.Type
	m.Type, reply = icmp.EchoTypes(e.Dst)
	binary.BigEndian.PutUint16(m.Rest[:], id)
	// The kernel computes the checksum of ICMPv6, which covers the source.
	message := m.Append(nil, e.Dst, e.Dst)
	var to net.Addr = &net.UDPAddr{IP: e.Dst.AsSlice(), Zone: e.Dst.Zone()}
	if raw {
		to = &net.IPAddr{IP: e.Dst.AsSlice(), Zone: e.Dst.Zone()}
	}
	if _, err := conn.WriteTo(message, to); err != nil {
		return machineError(err)
	}
	answer := make([]byte, maxDatagram)
	for {
		n, from, err := conn.ReadFrom(answer)
		if err != nil {
			return err
		}
		at, _ := netip.ParseAddr(hostOf(from))
		if n >= icmp.HeaderLen && answer[0] == reply.Number() && at.Unmap() == e.Dst &&
			bytes.Equal(answer[6:8], e.Rest[2:]) &&
			(!raw || binary.BigEndian.Uint16(answer[4:]) == id) {
			e.Body = answer[icmp.HeaderLen:n]
			return nil
		}
	}
}

// hostOf returns the address of a datagram's source without its port.
func hostOf(a net.Addr) string {
	switch a := a.(type) {
	case *net.UDPAddr:
		return a.AddrPort().Addr().String()
	case *net.IPAddr:
		return a.String()
	}
	return ""
}

// rawEcho opens a raw socket for ICMP.
func rawEcho(dst netip.Addr) (net.PacketConn, error) {
	network := "ip4:icmp"
	if dst.Is6() {
		network = "ip6:ipv6-icmp"
	}
	var config net.ListenConfig
	return config.ListenPacket(context.Background(), network, "")
}
