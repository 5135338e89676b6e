package portforward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// maxSOCKSDatagram is the longest datagram with its SOCKS header.
const maxSOCKSDatagram = 1 << 16

// association relays the datagrams of a SOCKS client (RFC 1928 §7).
type association struct {
	flow  *flow
	near  *net.UDPConn // socket in this machine's network
	far   *node.PacketConn
	host  netip.Addr // address of the client
	names map[string]netip.Addr

	mu     sync.Mutex
	client netip.AddrPort // sender of the first datagram
}

// associate relays datagrams until the client closes its connection.
func (f *flow) associate(c *net.TCPConn) error {
	fail := func(err error) error {
		writeSOCKSReply(c, socksFailed, netip.AddrPort{})
		_ = c.Close()
		return err
	}
	at, _ := c.LocalAddr().(*net.TCPAddr)
	near, err := net.ListenUDP("udp", &net.UDPAddr{IP: at.IP, Zone: at.Zone})
	if err != nil {
		return fail(machineError(err))
	}
	far, err := f.forward.set.node.Packets.Listen(f.forward.set.node.AllAddrs(0))
	if err != nil {
		_ = near.Close()
		return fail(control.Reason(err))
	}
	remote, _ := c.RemoteAddr().(*net.TCPAddr)
	a := &association{
		flow: f, near: near, far: far, host: remote.AddrPort().Addr().Unmap(),
		names: map[string]netip.Addr{},
	}
	shut := func() { _ = c.Close(); _ = near.Close(); _ = far.Close() }
	f.onCut(shut)
	local, _ := near.LocalAddr().(*net.UDPAddr)
	writeSOCKSReply(c, socksSucceeded, local.AddrPort())
	var both sync.WaitGroup
	both.Go(a.outward)
	both.Go(a.inward)
	_, _ = io.Copy(io.Discard, c) // waits until the client leaves
	shut()
	both.Wait()
	return nil
}

// inward sends the client's datagrams into the network. It drops fragments, other senders'
// datagrams, and datagrams to unknown hosts (RFC 1928 §7).
func (a *association) inward() {
	b := make([]byte, maxSOCKSDatagram)
	for {
		n, from, err := a.near.ReadFromUDPAddrPort(b)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue // the error is an ICMP error about an earlier datagram
		}
		if from.Addr().Unmap() != a.host || n < 4 || b[2] != 0 {
			continue
		}
		a.mu.Lock()
		if !a.client.IsValid() {
			a.client = from
		}
		known := a.client == from
		a.mu.Unlock()
		r := bytes.NewReader(b[3:n])
		host, port, err := readSOCKSAddress(r)
		if err != nil || !known || port == 0 {
			continue
		}
		to, ok := a.resolve(host)
		if !ok {
			continue
		}
		data := b[n-r.Len() : n]
		if _, err := a.far.WriteToAddrPort(data, netip.AddrPortFrom(to, port)); err == nil {
			a.flow.forward.count(true, len(data))
		}
	}
}

// resolve returns the address of a host. It remembers the addresses of up to maxNames names.
func (a *association) resolve(host string) (netip.Addr, bool) {
	if addr, ok := a.names[host]; ok {
		return addr, addr.IsValid()
	}
	ctx, cancel := context.WithTimeout(a.flow.forward.flowing, proxyDialTimeout)
	defer cancel()
	list, err := a.flow.lookup(ctx, host)
	if err != nil || len(list) == 0 {
		return netip.Addr{}, false
	}
	const maxNames = 256
	if len(a.names) < maxNames {
		a.names[host] = list[0]
	}
	return list[0], true
}

// outward sends the network's datagrams to the client.
func (a *association) outward() {
	b := make([]byte, maxSOCKSDatagram)
	for {
		n, from, err := a.far.ReadFromAddrPort(b)
		if err != nil {
			if errors.Is(err, net.ErrClosed) || errors.Is(err, control.ErrClosed) {
				return
			}
			continue // the error is an ICMP error about a datagram
		}
		a.mu.Lock()
		client := a.client
		a.mu.Unlock()
		if !client.IsValid() {
			continue
		}
		packet := append(appendSOCKSAddress([]byte{0, 0, 0}, from), b[:n]...)
		_ = a.near.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := a.near.WriteToUDPAddrPort(packet, client); err == nil {
			a.flow.forward.count(false, n)
		}
	}
}
