package services

import (
	"net"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// These are limits that tests reach.
const (
	HeaderTimeout = headerTimeout
	LeastPiece    = leastPiece
	MaxCounted    = maxCounted
	MaxServed     = maxServed
	MostPiece     = mostPiece
)

// Store is the last step of fetching an object.
var Store = store

// FewAtATime accepts at most n connections of a listener at a time.
func FewAtATime(l *node.Listener, n int) net.Listener {
	return &fewAtATime{Listener: l, room: make(chan struct{}, n)}
}

// Zone returns a function that answers for a zone. A limit of 0 stands for UDP's limit.
func Zone(
	cfg control.DNSConfig, self control.HostName,
) (func(query []byte, limit int) ([]byte, dnsmessage.RCode), error) {
	z, err := newZone(&cfg, self)
	if err != nil {
		return nil, err
	}
	return z.answer, nil
}

// ServeStream answers the queries of a TCP connection until it is idle.
func ServeStream(conn net.Conn, answer func([]byte) []byte) { serveStream(conn, dnsIdle, answer) }

// Accept returns why a resolver ignores a message; empty: it answers the query.
func Accept(query *dnsmessage.Message, b []byte) (why string) {
	d := &DNS{}
	d.accept(query, b)
	for _, c := range d.state.Ignored {
		why = c.What
	}
	return why
}
