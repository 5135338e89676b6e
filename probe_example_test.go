package tidepool_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool"
)

// What keeps a sender from sending more, when nobody reads what it sent.
func ExampleConn_Probe() {
	var clock tidepool.Clock
	a, b := tidepool.Pipe(0)
	start := func(address string, link *tidepool.PipeEnd) *tidepool.Node {
		n, err := tidepool.Open(tidepool.Config{
			Clock: &clock, TCP: tidepool.TCP{ReadBuffer: 64 << 10},
			Interfaces: []tidepool.Interface{{Addr: netip.MustParsePrefix(address), Link: link}},
		})
		if err != nil {
			log.Fatal(err)
		}
		return n
	}
	server, client := start("10.0.0.1/24", a), start("10.0.0.2/24", b)
	defer server.Close()
	defer client.Close()
	at := netip.MustParseAddrPort("10.0.0.1:80")
	ln, err := server.ListenTCP(at)
	if err != nil {
		log.Fatal(err)
	}
	conn, err := client.DialTCP(context.Background(), at)
	if err != nil {
		log.Fatal(err)
	}

	began, limited := clock.Now(), ""
	conn.Probe(func(s tidepool.Sample) {
		if s.Limited != limited {
			limited = s.Limited
			fmt.Printf("%v: %d bytes acknowledged, %d in flight, %d wait: %s\n",
				s.Time.Sub(began), s.Acked, s.Pipe, s.NotSentBytes, limited)
		}
	})
	conn.Write(make([]byte, 100_000))
	clock.Advance(100 * time.Millisecond)
	peer, err := ln.AcceptTCP()
	if err != nil {
		log.Fatal(err)
	}
	for n := 0; n < 100_000; {
		got, err := peer.Read(make([]byte, 100_000))
		if err != nil {
			log.Fatal(err)
		}
		n += got
	}
	conn.Probe(nil) // and the function has had its last call
	// Output:
	// 0s: 0 bytes acknowledged, 13480 in flight, 86520 wait: cwnd
	// 0s: 40440 bytes acknowledged, 24264 in flight, 35296 wait: rwnd
	// 0s: 64704 bytes acknowledged, 0 in flight, 35296 wait: persist
	// 100ms: 64704 bytes acknowledged, 35296 in flight, 0 wait: none
	// 100ms: 64704 bytes acknowledged, 35296 in flight, 0 wait: app
	// 100ms: 100000 bytes acknowledged, 0 in flight, 0 wait: idle
}
