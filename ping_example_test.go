package tidepool_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"

	"github.com/tidepool-net/tidepool"
)

// threeDriven returns 10.0.1.2, a router and 10.0.2.2 on one clock. The links have a delay of 5 ms.
func threeDriven(clock *tidepool.Clock) (a, router, c *tidepool.Node) {
	face := func(addr string, link *tidepool.PipeEnd) tidepool.Interface {
		return tidepool.Interface{
			Addr: netip.MustParsePrefix(addr), Link: link,
			Impair: tidepool.Impairments{Delay: 2500 * time.Microsecond}, // at both ends
		}
	}
	start := func(via string, faces ...tidepool.Interface) *tidepool.Node {
		cfg := tidepool.Config{Clock: clock, Interfaces: faces, Router: len(faces) > 1}
		if via != "" {
			cfg.Routes = []tidepool.Route{{
				Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr(via),
			}}
		}
		n, err := tidepool.Open(cfg)
		if err != nil {
			log.Fatal(err)
		}
		return n
	}
	a1, r1 := tidepool.Pipe(0)
	c2, r2 := tidepool.Pipe(0)
	a = start("10.0.1.1", face("10.0.1.2/24", a1))
	router = start("", face("10.0.1.1/24", r1), face("10.0.2.1/24", r2))
	c = start("10.0.2.1", face("10.0.2.2/24", c2))
	return a, router, c
}

// Three requests at an interval of a second, on a clock that the program advances.
func ExampleNode_StartPing() {
	var clock tidepool.Clock
	a, router, c := threeDriven(&clock)
	defer a.Close()
	defer router.Close()
	defer c.Close()

	ping, err := a.StartPing("10.0.2.2", tidepool.PingOptions{Count: 3})
	if err != nil {
		log.Fatal(err)
	}
	clock.Advance(3 * time.Second)
	result, err := ping.Wait(context.Background())
	for _, r := range result.Replies {
		fmt.Printf("%d bytes from %v: icmp_seq=%d ttl=%d time=%v\n",
			r.Size, r.From, r.Seq, r.TTL, r.RTT)
	}
	fmt.Println(result.Sent, result.Received, result.Avg, err)
	// Output:
	// 64 bytes from 10.0.2.2: icmp_seq=1 ttl=63 time=20ms
	// 64 bytes from 10.0.2.2: icmp_seq=2 ttl=63 time=20ms
	// 64 bytes from 10.0.2.2: icmp_seq=3 ttl=63 time=20ms
	// 3 3 20ms <nil>
}

// A router's error is part of the reply; it is not an error of the call.
func ExampleNode_Ping() {
	a, router, c := threeNodes()
	defer a.Close()
	defer router.Close()
	defer c.Close()

	result, err := c.Ping(context.Background(), "a.example", tidepool.PingOptions{
		TTL: 1, Count: 1,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range result.Replies {
		fmt.Printf("from %v: %v\n", r.From, r.Err)
	}
	_, err = c.Ping(context.Background(), "b.example", tidepool.PingOptions{})
	fmt.Println(err)
	// Output:
	// from 10.0.2.1: Time to live exceeded
	// ping ip:icmp: lookup b.example: no such host
}

// The routers on a path, found by UDP packets with increasing TTLs.
func ExampleNode_StartTraceroute() {
	var clock tidepool.Clock
	a, router, c := threeDriven(&clock)
	defer a.Close()
	defer router.Close()
	defer c.Close()

	trace, err := a.StartTraceroute("10.0.2.2", tidepool.TracerouteOptions{Queries: 2})
	if err != nil {
		log.Fatal(err)
	}
	clock.Advance(time.Second)
	hops, err := trace.Wait(context.Background())
	for _, hop := range hops {
		fmt.Print(hop.TTL)
		for _, p := range hop.Probes {
			fmt.Print("  ", p.From, " ", p.RTT)
		}
		fmt.Println()
	}
	fmt.Println(err)
	// Output:
	// 1  10.0.1.1 10ms  10.0.1.1 10ms
	// 2  10.0.2.2 20ms  10.0.2.2 20ms
	// <nil>
}

// A raw socket for ICMP, for programs that build their own messages.
func ExampleIPConn() {
	var clock tidepool.Clock
	a, router, c := threeDriven(&clock)
	defer a.Close()
	defer router.Close()
	defer c.Close()

	conn, err := a.ListenPacket("ip4:icmp", "0.0.0.0")
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	request := icmp.Message{
		Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: 1, Seq: 1, Data: []byte("hello")},
	}
	b, err := request.Marshal(nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := conn.WriteTo(b, &net.IPAddr{IP: net.IPv4(10, 0, 2, 2)}); err != nil {
		log.Fatal(err)
	}
	clock.Advance(20 * time.Millisecond)

	buf := make([]byte, 1500)
	n, from, err := conn.ReadFrom(buf)
	if err != nil {
		log.Fatal(err)
	}
	const protocolICMP = 1
	reply, err := icmp.ParseMessage(protocolICMP, buf[:n])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v from %v: %s\n", reply.Type, from, reply.Body.(*icmp.Echo).Data)
	// Output: echo reply from 10.0.2.2: hello
}

// The reasons why a sender waits when the receiver does not read.
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
	conn.Probe(nil) // no calls of the function after this
	// Output:
	// 0s: 0 bytes acknowledged, 13480 in flight, 86520 wait: cwnd
	// 0s: 40440 bytes acknowledged, 24264 in flight, 35296 wait: rwnd
	// 0s: 64704 bytes acknowledged, 0 in flight, 35296 wait: persist
	// 100ms: 64704 bytes acknowledged, 35296 in flight, 0 wait: none
	// 100ms: 64704 bytes acknowledged, 35296 in flight, 0 wait: app
	// 100ms: 100000 bytes acknowledged, 0 in flight, 0 wait: idle
}

// An echo server over the sliding-fence transport, and a client.
func ExampleRCP() {
	server, router, client := threeNodes()
	defer server.Close()
	defer router.Close()
	defer client.Close()

	// A busy machine may pause for a long time.
	how := tidepool.RCP{Timeout: 20 * time.Second}
	l, err := server.ListenRCP(netip.AddrPortFrom(netip.Addr{}, 9000), how)
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.Copy(c, c)
		_ = c.Close()
	}()

	d := tidepool.Dialer{Node: client, RCP: how}
	c, err := d.Dial("rcp", "10.0.1.2:9000")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.WriteString(c, "over the fence")
	_ = c.(*tidepool.RCPConn).CloseWrite()
	echo, err := io.ReadAll(c)
	fmt.Printf("%s %v\n", echo, err)
	// Output: over the fence <nil>
}

// Several objects in one UDP flow, through a router that loses 1 %: the small object does not wait
// for the large one.
func ExampleNode_FetchRDT() {
	server, router, client := threeNodes()
	defer server.Close()
	defer router.Close()
	defer client.Close()

	s, err := server.ServeRDT(netip.MustParseAddrPort("0.0.0.0:9000"),
		tidepool.RDT{Interleave: true},
		tidepool.RDTObject{Name: "large", Data: []byte(strings.Repeat("tide", 100_000))},
		tidepool.RDTObject{Name: "small", Data: []byte("pool")},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	at := netip.MustParseAddrPort("10.0.1.2:9000")
	_, err = client.FetchRDT(context.Background(), at, tidepool.RDT{},
		func(r tidepool.RDTResult) error {
			fmt.Println(r.Name, len(r.Data), r.Err)
			return nil
		})
	fmt.Println(err)
	// Output:
	// small 4 <nil>
	// large 400000 <nil>
	// <nil>
}
