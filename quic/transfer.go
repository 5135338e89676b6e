package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// A client opens a stream for each object and asks for it by its number, 4 bytes; the server
// writes the object and closes the stream. Who has everything asks for overNumber, on a stream
// that ends empty: both ends know then that the other has nothing more to say.
const (
	numberBytes = 4
	overNumber  = 1<<32 - 1
	protocol    = "tidepool-objects"
)

// Limits of a connection. Everything else is quic-go's, whose congestion control is Reno's.
const (
	maxStreams   = 512
	idleTimeout  = 30 * time.Second
	leastPacket  = 1200      // RFC 9000 §14: what every path of QUIC carries
	readerBuffer = 4 << 20   // of the socket: what comes while nobody reads
	udpHeaders   = 20 + 8    // of IP and UDP
	certificate  = time.Hour // how long it is good
)

// config is how connections are over links of an MTU.
func config(mtu int) (*quic.Config, error) {
	packet := mtu - udpHeaders
	if packet < leastPacket {
		return nil, fmt.Errorf("an MTU of %d is too small for QUIC: want %d (RFC 9000 §14)", mtu,
			leastPacket+udpHeaders)
	}
	return &quic.Config{
		MaxIncomingStreams: maxStreams, MaxIdleTimeout: idleTimeout,
		InitialPacketSize: uint16(min(packet, 1452)), DisablePathMTUDiscovery: true,
	}, nil
}

// credentials are made for one run: who one talks to is not in question on a link of one's own.
func credentials() (*tls.Config, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    now.Add(-certificate), NotAfter: now.Add(certificate),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}},
		NextProtos:   []string{protocol},
	}, nil
}

// give serves one client on pc, with data by number. It returns when the client has everything.
func give(
	ctx context.Context, pc net.PacketConn, cfg *quic.Config, data [][]byte, ready func(),
) (stats quic.ConnectionStats, err error) {
	secret, err := credentials()
	if err != nil {
		return stats, err
	}
	t := &quic.Transport{Conn: pc}
	defer t.Close()
	l, err := t.Listen(secret, cfg)
	if err != nil {
		return stats, err
	}
	ready()
	c, err := l.Accept(ctx)
	if err != nil {
		return stats, err
	}
	defer func() { _ = c.CloseWithError(0, "") }()
	over, all := make(chan struct{}), make(chan struct{})
	var once sync.Once
	go func() {
		defer close(over)
		for {
			s, err := c.AcceptStream(ctx)
			if err != nil {
				return
			}
			go answer(s, data, func() { once.Do(func() { close(all) }) })
		}
	}()
	select {
	case <-over: // the client closes the connection when it has everything
	case <-all:
		select {
		case <-over:
		case <-time.After(closePatience): // a close is sent once, and may be lost
			_ = c.CloseWithError(0, "")
			<-over
		}
	}
	cause := context.Cause(c.Context())
	stats = c.ConnectionStats()
	if ctx.Err() != nil {
		return stats, context.Cause(ctx)
	}
	if end, ok := errors.AsType[*quic.ApplicationError](cause); ok && end.ErrorCode == 0 {
		return stats, nil
	}
	return stats, cause
}

// closePatience is how long a server waits for a client's close that has everything.
const closePatience = time.Second

// answer writes the object that a stream asks for. It calls all when the client has everything.
func answer(s *quic.Stream, data [][]byte, all func()) {
	const unknown = 1
	var number [numberBytes]byte
	if _, err := io.ReadFull(s, number[:]); err != nil {
		s.CancelWrite(unknown)
		return
	}
	i := binary.BigEndian.Uint32(number[:])
	switch {
	case i == overNumber:
		defer all()
	case int64(i) < int64(len(data)):
		if _, err := s.Write(data[i]); err != nil {
			return // the connection is gone, which is told
		}
	default:
		s.CancelWrite(unknown)
		return
	}
	_ = s.Close() // what was written still leaves
}

// take asks the server at to for objects by number, all at once, and gives out what comes of each.
// One that is false of some ends it.
func take(
	ctx context.Context, pc net.PacketConn, cfg *quic.Config, to net.Addr, numbers []int,
	got func(i, at int, p []byte) bool,
) error {
	t := &quic.Transport{Conn: pc}
	defer t.Close()
	trust := &tls.Config{NextProtos: []string{protocol}}
	trust.InsecureSkipVerify = true //nolint:gosec // see credentials
	c, err := t.Dial(ctx, to, trust, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = c.CloseWithError(0, "") }()
	// Who reads waits no more.
	stop := context.AfterFunc(ctx, func() { _ = c.CloseWithError(0, "") })
	defer stop()
	var all sync.WaitGroup
	errs := make([]error, len(numbers))
	for k, i := range numbers {
		s, err := ask(ctx, c, uint32(i))
		if err != nil {
			errs[k] = err
			break
		}
		all.Go(func() { errs[k] = read(s, i, got) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	if s, err := ask(ctx, c, overNumber); err == nil {
		_, _ = io.Copy(io.Discard, s) // everything is here, whatever becomes of this
	}
	return nil
}

// ask opens a stream for an object.
func ask(ctx context.Context, c *quic.Conn, number uint32) (*quic.Stream, error) {
	s, err := c.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.Write(binary.BigEndian.AppendUint32(nil, number)); err != nil {
		return nil, err
	}
	return s, s.Close()
}

// errForeign is an object that is not what it should be.
var errForeign = errors.New("what comes is not the object")

// read gives out what comes of one object.
func read(s *quic.Stream, i int, got func(i, at int, p []byte) bool) error {
	buf := make([]byte, 1<<16)
	for at := 0; ; {
		n, err := s.Read(buf)
		if n > 0 && !got(i, at, buf[:n]) {
			return errForeign
		}
		at += n
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
