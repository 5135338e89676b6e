package adapters

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internet"
)

// lossy is a network of a client, a router and a server. A round trip takes 40 ms, and each packet
// is lost with a probability of 2 %.
const lossy = "link client r delay 10ms loss 1%\nlink r server delay 10ms loss 1%"

// star returns a network of n hosts around a router: n1, n2, and so on.
func star(n int, words string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "link n%d r %s\n", i+1, words)
	}
	return b.String()
}

// accept serves the connections to a port, each in a goroutine, until the host ends.
func accept(h *internet.Host, port int, serve func(net.Conn)) {
	ln, err := h.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return // the host has crashed
	}
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go serve(c)
	}
}

// within returns a context that ends after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// certificate returns a server's certificate and a client's configuration that trusts it. The
// certificate is valid from the bubble's start time.
func certificate(t *testing.T, name, protocol string) (server, client *tls.Config) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	server = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}},
		NextProtos:   []string{protocol}, MinVersion: tls.VersionTLS13,
	}
	client = &tls.Config{
		RootCAs: pool, ServerName: name, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS13,
	}
	return server, client
}
