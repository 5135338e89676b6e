package portforward

import (
	"context"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// These are versions, methods, commands and types of addresses of SOCKS (RFC 1928 §3 to §5).
const (
	socks4 = 4
	socks5 = 5

	noAuthentication = 0
	byPassword       = 2
	noMethod         = 0xff

	commandConnect   = 1
	commandAssociate = 3

	addressIPv4 = 1
	addressName = 3
	addressIPv6 = 4
)

// socksReply is a reply to a request (RFC 1928 §6).
type socksReply byte

// These are the replies.
const (
	socksSucceeded   socksReply = 0
	socksFailed      socksReply = 1
	socksNotAllowed  socksReply = 2
	socksNetwork     socksReply = 3
	socksHost        socksReply = 4
	socksRefused     socksReply = 5
	socksExpired     socksReply = 6
	socksCommand     socksReply = 7
	socksAddressType socksReply = 8
)

func replyOf(err error) socksReply {
	switch {
	case errors.Is(err, control.ErrRefused), errors.Is(err, control.ErrReset):
		return socksRefused
	case errors.Is(err, control.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return socksExpired
	case errors.Is(err, control.ErrNoRoute), errors.Is(err, control.ErrInterfaceDown):
		return socksNetwork
	case errors.Is(err, control.ErrUnreachable), errors.Is(err, control.ErrNoSuchName):
		return socksHost
	case errors.Is(err, control.ErrUsage):
		return socksNotAllowed
	}
	return socksFailed
}

// serveSOCKS serves a client after the version byte of its first message.
func (p *proxy) serveSOCKS(f *flow, c *net.TCPConn) error {
	near := machineEnd{c}
	if err := p.authenticate(c); err != nil {
		_ = c.Close()
		return handshakeError(err)
	}
	command, host, port, err := readSOCKSRequest(c)
	if err != nil {
		_ = c.Close()
		return handshakeError(err)
	}
	_ = c.SetDeadline(time.Time{})
	switch command {
	case commandConnect:
	case commandAssociate:
		return f.associate(c)
	default: // BIND is not supported, because servers no longer connect to clients
		writeSOCKSReply(c, socksCommand, netip.AddrPort{})
		_ = c.Close()
		return fmt.Errorf("SOCKS command %d is not supported", command)
	}
	ctx, stop := f.whileConnected(near)
	v, err := f.dialHost(ctx, host, port)
	stop()
	if err != nil {
		writeSOCKSReply(c, replyOf(err), netip.AddrPort{})
		_ = c.Close()
		return fmt.Errorf("%s: %w", net.JoinHostPort(host, strconv.Itoa(int(port))), err)
	}
	writeSOCKSReply(c, socksSucceeded, v.Local())
	return f.join(near, v)
}

// authenticate chooses a method (RFC 1928 §3), and checks the password if there is one (RFC 1929
// §2).
func (p *proxy) authenticate(c net.Conn) error {
	methods, err := readCounted(c)
	if err != nil {
		return err
	}
	wanted := byte(noAuthentication)
	if p.user != "" {
		wanted = byPassword
	}
	if !slices.Contains(methods, wanted) {
		_, _ = c.Write([]byte{socks5, noMethod})
		if wanted == byPassword {
			return errors.New("the client offers no password, and this proxy requires one")
		}
		return errors.New("the client requires a password, and this proxy has none")
	}
	if _, err := c.Write([]byte{socks5, wanted}); err != nil || wanted == noAuthentication {
		return err
	}
	var version [1]byte
	if _, err := io.ReadFull(c, version[:]); err != nil {
		return err
	}
	user, err := readCounted(c)
	if err != nil {
		return err
	}
	password, err := readCounted(c)
	if err != nil {
		return err
	}
	good := subtle.ConstantTimeCompare(user, []byte(p.user)) &
		subtle.ConstantTimeCompare(password, []byte(p.password))
	if version[0] != 1 || good != 1 {
		_, _ = c.Write([]byte{1, 1})
		return errors.New("wrong user or password")
	}
	_, err = c.Write([]byte{1, 0})
	return err
}

// readCounted reads a one-byte length, and that many bytes.
func readCounted(c io.Reader) ([]byte, error) {
	var n [1]byte
	if _, err := io.ReadFull(c, n[:]); err != nil {
		return nil, err
	}
	b := make([]byte, n[0])
	_, err := io.ReadFull(c, b)
	return b, err
}

// readSOCKSRequest reads a request (RFC 1928 §4). If the address type is unknown, it sends a reply.
func readSOCKSRequest(c net.Conn) (command byte, host string, port uint16, err error) {
	var head [3]byte
	if _, err = io.ReadFull(c, head[:]); err != nil {
		return 0, "", 0, err
	}
	if head[0] != socks5 {
		return 0, "", 0, fmt.Errorf("version %d of a SOCKS request: must be 5", head[0])
	}
	host, port, err = readSOCKSAddress(c)
	if errors.Is(err, errAddressType) {
		writeSOCKSReply(c, socksAddressType, netip.AddrPort{})
	}
	return head[1], host, port, err
}

var errAddressType = errors.New("unknown type of address in a SOCKS request")

// readSOCKSAddress reads an address and a port (RFC 1928 §5).
func readSOCKSAddress(c io.Reader) (host string, port uint16, err error) {
	var typ [1]byte
	if _, err = io.ReadFull(c, typ[:]); err != nil {
		return "", 0, err
	}
	var b []byte
	switch typ[0] {
	case addressIPv4:
		b = make([]byte, 4)
		_, err = io.ReadFull(c, b)
	case addressIPv6:
		b = make([]byte, 16)
		_, err = io.ReadFull(c, b)
	case addressName:
		b, err = readCounted(c)
		host = string(b)
	default:
		return "", 0, fmt.Errorf("%w: %d", errAddressType, typ[0])
	}
	if err != nil {
		return "", 0, err
	}
	if typ[0] != addressName {
		a, _ := netip.AddrFromSlice(b)
		host = a.String()
	}
	var number [2]byte
	_, err = io.ReadFull(c, number[:])
	return host, binary.BigEndian.Uint16(number[:]), err
}

// appendSOCKSAddress appends an address and a port; the zero value is 0.0.0.0:0.
func appendSOCKSAddress(b []byte, at netip.AddrPort) []byte {
	a := at.Addr().Unmap()
	switch {
	case a.Is6():
		b = append(append(b, addressIPv6), a.WithZone("").AsSlice()...)
	case a.Is4():
		b = append(append(b, addressIPv4), a.AsSlice()...)
	default:
		b = append(b, addressIPv4, 0, 0, 0, 0)
	}
	return binary.BigEndian.AppendUint16(b, at.Port())
}

// writeSOCKSReply sends a reply. If the client is gone, the next read fails.
func writeSOCKSReply(c net.Conn, r socksReply, bound netip.AddrPort) {
	_ = c.SetWriteDeadline(time.Now().Add(handshakeTimeout))
	_, _ = c.Write(appendSOCKSAddress([]byte{socks5, byte(r), 0}, bound))
	_ = c.SetWriteDeadline(time.Time{})
}

// whileConnected returns a context that ends when the client closes its connection, and the
// function that stops watching it. Nothing else may read the connection meanwhile.
func (f *flow) whileConnected(client machineEnd) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(f.forward.flowing)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if client.awaitFIN() {
			cancel(errLeft)
		}
	}()
	return ctx, func() {
		_ = client.SetReadDeadline(time.Unix(0, 1)) // ends the goroutine's wait
		<-watched
		_ = client.SetReadDeadline(time.Time{})
		cancel(nil)
	}
}
