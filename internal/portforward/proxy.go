package portforward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

const (
	// handshakeTimeout limits how long a client of a proxy may take to send its request.
	handshakeTimeout = 10 * time.Second
	// proxyDialTimeout limits how long a virtual host may take to answer.
	proxyDialTimeout = 20 * time.Second
)

// Proxy makes a port of this machine a SOCKS5 proxy (RFC 1928) and an HTTP proxy into the network:
// its clients connect as the node, and names are looked up by the node.
func (s *Set) Proxy(r control.Socks) (*Forward, error) {
	on := r.On
	if !on.IsValid() {
		on = loopback
	}
	from := netip.AddrPortFrom(on, r.Port)
	what := "socks " + from.String()
	switch {
	case on.IsMulticast():
		return nil, control.Misuse("%s: must be an address of this machine", what)
	case (r.User == "") != (r.Password == ""):
		return nil, control.Misuse("%s: user and password must be set together", what)
	case max(len(r.User), len(r.Password)) > 255:
		return nil, control.Misuse("%s: user and password must each have at most 255 bytes", what)
	}
	p := &proxy{user: r.User, password: r.Password}
	return s.listen(control.DoorSocks, from, "every host", func(f *flow, c *net.TCPConn) error {
		return p.serve(f, c)
	})
}

// proxy is the configuration of a proxy. If the user name is empty, the proxy asks for no password.
type proxy struct{ user, password string }

// serve serves one client. The first byte selects the protocol: 5 for SOCKS5, or a letter for HTTP.
func (p *proxy) serve(f *flow, c *net.TCPConn) error {
	near := machineEnd{c}
	_ = c.SetDeadline(time.Now().Add(handshakeTimeout))
	var first [1]byte
	if _, err := io.ReadFull(c, first[:]); err != nil {
		near.Abort()
		return handshakeError(err)
	}
	switch b := first[0]; {
	case b == socks5:
		return p.serveSOCKS(f, c)
	case b == socks4:
		_, _ = c.Write([]byte{0, 91, 0, 0, 0, 0, 0, 0}) // the request is rejected
		_ = c.Close()
		return errors.New("SOCKS4 is not supported: use SOCKS5")
	case b >= 'A' && b <= 'Z':
		return p.serveHTTP(f, c, b)
	}
	near.Abort()
	return fmt.Errorf("first byte %#x: neither SOCKS5 nor HTTP", first[0])
}

// handshakeError explains an error during a client's request.
func handshakeError(err error) error {
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return fmt.Errorf("the client sent no request within %v", handshakeTimeout)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the client disconnected before its request")
	}
	return err
}

// dialHost connects to an address, or to the first address of a name that accepts.
func (f *flow) dialHost(ctx context.Context, host string, port uint16) (*node.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, proxyDialTimeout)
	defer cancel()
	list, err := f.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		v, failed := f.forward.set.node.TCP.Dial(ctx, netip.AddrPortFrom(a, port))
		if failed == nil {
			v.Guard()
			return v, nil
		}
		if err == nil {
			err = control.Reason(failed)
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%s port %d: %w", host, port, control.ErrTimeout)
	}
	return nil, err
}

func (f *flow) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		if !control.IsHost(a.Unmap()) {
			return nil, fmt.Errorf("%v: %w: not the address of a host", a, control.ErrUsage)
		}
		return []netip.Addr{a.Unmap()}, nil
	}
	if f.forward.set.Lookup == nil {
		return nil, fmt.Errorf("%s: %w", host, control.ErrNoSuchName)
	}
	return f.forward.set.Lookup(ctx, host)
}
