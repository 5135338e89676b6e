// Package tls replaces crypto/tls in the playground, whose nodes have no TLS. It has only what
// net/http needs to compile. It makes the playground's program an eighth smaller.
package tls

import (
	"context"
	"errors"
	"net"
)

var errNone = errors.New("tls: this program has no TLS")

// Certificate is not used.
type Certificate struct{}

// VerifyHostname fails.
func (*Certificate) VerifyHostname(string) error { return errNone }

// Config is not used.
type Config struct {
	Certificates       []Certificate
	GetCertificate     func(*ClientHelloInfo) (*Certificate, error)
	GetConfigForClient func(*ClientHelloInfo) (*Config, error)
	NextProtos         []string
	ServerName         string
}

// Clone returns a copy.
func (c *Config) Clone() *Config {
	d := *c
	return &d
}

// ClientHelloInfo is not used.
type ClientHelloInfo struct{}

// ConnectionState is always the state of no connection.
type ConnectionState struct {
	HandshakeComplete          bool
	NegotiatedProtocol         string
	NegotiatedProtocolIsMutual bool
	PeerCertificates           []*Certificate
}

// Conn is a connection whose handshake fails.
type Conn struct{ net.Conn }

// Client returns a connection whose handshake fails.
func Client(c net.Conn, _ *Config) *Conn { return &Conn{c} }

// HandshakeContext fails.
func (*Conn) HandshakeContext(context.Context) error { return errNone }

// ConnectionState returns the state of no connection.
func (*Conn) ConnectionState() ConnectionState { return ConnectionState{} }

// NetConn returns the underlying connection.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// VerifyHostname fails.
func (*Conn) VerifyHostname(string) error { return errNone }

// RecordHeaderError does not occur.
type RecordHeaderError struct {
	RecordHeader [5]byte
	Conn         net.Conn
}

// Error implements error.
func (RecordHeaderError) Error() string { return errNone.Error() }

// LoadX509KeyPair fails.
func LoadX509KeyPair(_, _ string) (Certificate, error) { return Certificate{}, errNone }

// NewListener returns a listener whose connections have no TLS. It is never called, because
// LoadX509KeyPair fails first.
func NewListener(l net.Listener, _ *Config) net.Listener { return l }
