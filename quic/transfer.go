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

// A client opens a stream for each object and writes its number, 4 bytes; the server writes the
// object and closes the stream. A client that has everything requests doneNumber, and the server
// closes that stream without data. Then both ends know that no more data follows.
const (
	numberBytes = 4
	doneNumber  = 1<<32 - 1
	protocol    = "tidepool-objects"
)

// Limits of a connection. All others are quic-go's defaults; its congestion control is Reno.
const (
	maxStreams   = 512
	idleTimeout  = 30 * time.Second
	minPacket    = 1200    // RFC 9000 §14: every path must carry it
	readerBuffer = 4 << 20 // socket buffer, for packets that arrive between two reads
	udpHeaders   = 20 + 8  // IP and UDP
	certLifetime = time.Hour
)

// config returns the configuration for connections over links with the given MTU.
func config(mtu int) (*quic.Config, error) {
	packet := mtu - udpHeaders
	if packet < minPacket {
		return nil, fmt.Errorf("an MTU of %d is too small for QUIC: "+
			"must be at least %d (RFC 9000 §14)",
			mtu,
			minPacket+udpHeaders)
	}
	return &quic.Config{
		MaxIncomingStreams: maxStreams, MaxIdleTimeout: idleTimeout,
		InitialPacketSize: uint16(min(packet, 1452)), DisablePathMTUDiscovery: true,
	}, nil
}

// credentials returns a self-signed certificate for one run. The client does not verify it: both
// ends belong to the experiment.
func credentials() (*tls.Config, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    now.Add(-certLifetime), NotAfter: now.Add(certLifetime),
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

// serveObjects serves data to one client on pc. It calls ready when it listens, and returns when
// the client has every object.
func serveObjects(
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
	case <-over: // the client closed the connection: it has everything
	case <-all:
		select {
		case <-over:
		case <-time.After(closeTimeout): // QUIC sends a close once, and it may be lost
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

// closeTimeout is how long the server waits for the close of a client that has everything.
const closeTimeout = time.Second

// answer writes the object that the client requests on stream s. It calls all when the client
// reports that it has everything.
func answer(s *quic.Stream, data [][]byte, all func()) {
	const unknown = 1
	var number [numberBytes]byte
	if _, err := io.ReadFull(s, number[:]); err != nil {
		s.CancelWrite(unknown)
		return
	}
	i := binary.BigEndian.Uint32(number[:])
	switch {
	case i == doneNumber:
		defer all()
	case int64(i) < int64(len(data)):
		if _, err := s.Write(data[i]); err != nil {
			return // the connection is gone; serveObjects returns its error
		}
	default:
		s.CancelWrite(unknown)
		return
	}
	_ = s.Close() // data already written is still sent
}

// fetchObjects requests objects by number from the server at address to, all at once, and passes
// their bytes to got as they arrive. It fails if got returns false, which means that the bytes are
// wrong.
func fetchObjects(
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
	// Unblocks the reads when ctx ends.
	stop := context.AfterFunc(ctx, func() { _ = c.CloseWithError(0, "") })
	defer stop()
	var all sync.WaitGroup
	errs := make([]error, len(numbers))
	for k, i := range numbers {
		s, err := request(ctx, c, uint32(i))
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
	if s, err := request(ctx, c, doneNumber); err == nil {
		_, _ = io.Copy(io.Discard, s) // all objects have arrived, so an error does not matter
	}
	return nil
}

// request opens a stream and requests an object on it.
func request(ctx context.Context, c *quic.Conn, number uint32) (*quic.Stream, error) {
	s, err := c.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.Write(binary.BigEndian.AppendUint32(nil, number)); err != nil {
		return nil, err
	}
	return s, s.Close()
}

// errWrongObject means that the received bytes differ from those of the object.
var errWrongObject = errors.New("received bytes differ from the object's")

// read passes the bytes of object i to got as they arrive.
func read(s *quic.Stream, i int, got func(i, at int, p []byte) bool) error {
	buf := make([]byte, 1<<16)
	for at := 0; ; {
		n, err := s.Read(buf)
		if n > 0 && !got(i, at, buf[:n]) {
			return errWrongObject
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
