package tidepool_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/tidepool-net/tidepool"
)

// threeNodes returns two hosts and the router between them, which loses 1 % of the packets in each
// direction.
func threeNodes() (a, router, c *tidepool.Node) {
	start := func(cfg tidepool.Config) *tidepool.Node {
		n, err := tidepool.Open(cfg)
		if err != nil {
			log.Fatal(err)
		}
		return n
	}
	everything := netip.MustParsePrefix("0.0.0.0/0")
	a1, r1 := tidepool.Pipe(0)
	c2, r2 := tidepool.Pipe(0)
	a = start(tidepool.Config{
		Interfaces: []tidepool.Interface{{Addr: netip.MustParsePrefix("10.0.1.2/24"), Link: a1}},
		Routes:     []tidepool.Route{{Prefix: everything, Via: netip.MustParseAddr("10.0.1.1")}},
	})
	router = start(tidepool.Config{
		Router: true,
		Interfaces: []tidepool.Interface{
			{Addr: netip.MustParsePrefix("10.0.1.1/24"), Link: r1},
			{Addr: netip.MustParsePrefix("10.0.2.1/24"), Link: r2},
		},
	})
	c = start(tidepool.Config{
		Interfaces: []tidepool.Interface{{Addr: netip.MustParsePrefix("10.0.2.2/24"), Link: c2}},
		Routes:     []tidepool.Route{{Prefix: everything, Via: netip.MustParseAddr("10.0.2.1")}},
		Hosts:      map[string]netip.Addr{"a.example": netip.MustParseAddr("10.0.1.2")},
	})
	if err := router.SetLoss(0.01); err != nil {
		log.Fatal(err)
	}
	return a, router, c
}

// An HTTP server and its client in one process, with a lossy router between them.
func Example() {
	a, router, c := threeNodes()
	defer a.Close()
	defer router.Close()
	defer c.Close()

	ln, err := a.Listen("tcp", ":80")
	if err != nil {
		log.Fatal(err)
	}
	go http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello, %s", r.RemoteAddr[:len("10.0.2.2")])
	}))

	client := http.Client{Transport: &http.Transport{
		DialContext: c.DialContext, DisableKeepAlives: true,
	}}
	resp, err := client.Get("http://a.example/")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(body))
	// Output: hello, 10.0.2.2
}

// Two nodes on a link in memory.
func ExampleOpen() {
	a, b := tidepool.Pipe(0)
	server, err := tidepool.Open(tidepool.Config{Interfaces: []tidepool.Interface{
		{Addr: netip.MustParsePrefix("10.0.0.1/24"), Link: a},
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client, err := tidepool.Open(tidepool.Config{Interfaces: []tidepool.Interface{
		{Addr: netip.MustParsePrefix("10.0.0.2/24"), Link: b},
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ln, err := server.Listen("tcp", "10.0.0.1:80")
	if err != nil {
		log.Fatal(err)
	}
	go http.Serve(ln, http.NotFoundHandler())
	web := http.Client{Transport: &http.Transport{DialContext: client.DialContext}}
	resp, err := web.Get("http://10.0.0.1/")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.Status)
	resp.Body.Close()
	web.CloseIdleConnections()
	// Output: 404 Not Found
}

// An SSH server that prints the command it was asked to run.
func Example_ssh() {
	a, router, c := threeNodes()
	defer a.Close()
	defer router.Close()
	defer c.Close()

	key, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		log.Fatal(err)
	}
	server := &ssh.ServerConfig{NoClientAuth: true}
	server.AddHostKey(key)
	ln, err := a.Listen("tcp", ":22")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		raw, err := ln.Accept()
		if err != nil {
			log.Fatal(err)
		}
		_, channels, requests, err := ssh.NewServerConn(raw, server)
		if err != nil {
			log.Fatal(err)
		}
		go ssh.DiscardRequests(requests)
		for offered := range channels {
			channel, requests, err := offered.Accept()
			if err != nil {
				log.Fatal(err)
			}
			run := <-requests
			run.Reply(true, nil)
			var command struct{ Text string }
			ssh.Unmarshal(run.Payload, &command)
			fmt.Fprintf(channel, "you said %q", command.Text)
			channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{0}))
			channel.Close()
		}
	}()

	raw, err := c.Dial("tcp", "10.0.1.2:22")
	if err != nil {
		log.Fatal(err)
	}
	conn, channels, requests, err := ssh.NewClientConn(raw, "10.0.1.2:22", &ssh.ClientConfig{
		HostKeyCallback: ssh.FixedHostKey(key.PublicKey()),
	})
	if err != nil {
		log.Fatal(err)
	}
	client := ssh.NewClient(conn, channels, requests)
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		log.Fatal(err)
	}
	said, err := session.Output("uptime")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(said))
	// Output: you said "uptime"
}

// The program is the other end of the link and advances the clock.
func ExampleClock() {
	var clock tidepool.Clock
	end, wire := tidepool.Pipe(0)
	n, err := tidepool.Open(tidepool.Config{
		Clock:      &clock,
		Interfaces: []tidepool.Interface{{Addr: netip.MustParsePrefix("10.0.0.1/24"), Link: end}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer n.Close()

	failed := make(chan error)
	go func() {
		_, err := n.Dial("tcp", "10.0.0.2:80")
		failed <- err
	}()
	packet := make([]byte, 1500)
	for range 3 {
		if _, err := wire.Read(packet); err != nil {
			log.Fatal(err)
		}
		next, _ := clock.Next()
		fmt.Printf("%s s: a SYN to %v, again in %v\n",
			clock.Now().Format("05"), netip.AddrFrom4([4]byte(packet[16:20])), next)
		clock.Advance(next)
	}
	clock.Advance(5 * time.Minute)
	fmt.Println(<-failed)
	// Output:
	// 00 s: a SYN to 10.0.0.2, again in 1s
	// 01 s: a SYN to 10.0.0.2, again in 2s
	// 03 s: a SYN to 10.0.0.2, again in 4s
	// dial tcp 10.0.0.2:80: connection timed out
}

// A gateway receives every connection request, whatever its destination, and accepts or refuses it.
func ExampleNode_Forward() {
	a, b := tidepool.Pipe(0)
	gateway, err := tidepool.Open(tidepool.Config{
		Interfaces: []tidepool.Interface{{Addr: netip.MustParsePrefix("10.0.0.1/24"), Link: a}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gateway.Close()
	host, err := tidepool.Open(tidepool.Config{
		Interfaces: []tidepool.Interface{{Addr: netip.MustParsePrefix("10.0.0.2/24"), Link: b}},
		Routes: []tidepool.Route{{
			Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.0.0.1"),
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Close()

	gateway.Forward(func(r *tidepool.Request) {
		if r.Local().Port() != 80 {
			r.Reject()
			return
		}
		conn, err := r.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "this is not really %v", r.Local()) // a proxy would dial that address
	})

	conn, err := host.Dial("tcp", "93.184.216.34:80")
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	said, err := io.ReadAll(conn)
	fmt.Println(string(said), err)
	_, err = host.Dial("tcp", "93.184.216.34:25")
	fmt.Println(err)
	// Output:
	// this is not really 93.184.216.34:80 <nil>
	// dial tcp 93.184.216.34:25: connection refused
}

// A UDP client and server.
func ExampleNode_ListenPacket() {
	a, router, c := threeNodes()
	defer a.Close()
	defer router.Close()
	defer c.Close()
	if err := router.SetLoss(0); err != nil { // UDP does not retransmit
		log.Fatal(err)
	}

	echo, err := a.ListenPacket("udp", ":7")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := echo.ReadFrom(buf)
			if err != nil {
				return
			}
			echo.WriteTo(buf[:n], from)
		}
	}()

	conn, err := c.DialContext(context.Background(), "udp", "a.example:7")
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "over and out")
	buf := make([]byte, 1500)
	n, err := conn.Read(buf)
	fmt.Println(string(buf[:n]), err)
	// Output: over and out <nil>
}

// A connection from a fixed local port.
func ExampleDialer() {
	a, router, c := threeNodes()
	defer a.Close()
	defer router.Close()
	defer c.Close()
	ln, err := a.Listen("tcp", ":80")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Fprintf(conn, "hello, %v", conn.RemoteAddr())
		conn.Close()
	}()

	d := tidepool.Dialer{
		Node: c, LocalAddr: netip.MustParseAddrPort("10.0.2.2:4000"), Timeout: time.Minute,
	}
	conn, err := d.Dial("tcp", "a.example:80")
	if err != nil {
		log.Fatal(err)
	}
	said, err := io.ReadAll(conn)
	fmt.Println(string(said), err)
	_, err = d.Dial("tcp", "a.example:80")
	fmt.Println(errors.Is(err, syscall.EADDRINUSE))
	conn.Close()
	// Output:
	// hello, 10.0.2.2:4000 <nil>
	// true
}

// The state of a connection.
func ExampleConn_Info() {
	a, router, c := threeNodes()
	defer a.Close()
	defer router.Close()
	defer c.Close()
	ln, err := a.Listen("tcp", ":80")
	if err != nil {
		log.Fatal(err)
	}
	defer ln.Close()
	conn, err := c.Dial("tcp", "a.example:80")
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	info, err := conn.(*tidepool.Conn).Info()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.State, info.CongestionControl, info.SndMSS, info.SndCwnd/info.SndMSS)
	// Output: ESTABLISHED cubic 1348 10
}

// A node of a network that .lnx files describe, such as those in nets/.
func ExampleOpenFile() {
	n, err := tidepool.OpenFile("nets/a-b-c/A.lnx")
	if err != nil {
		log.Fatal(err)
	}
	defer n.Close()
	ln, err := n.Listen("tcp", ":80")
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(ln, http.FileServer(http.Dir("."))))
}

// Any program on this machine can load a page of a virtual host.
func ExampleNode_Publish() {
	a, b := tidepool.Pipe(0)
	server, err := tidepool.Open(tidepool.Config{
		Interfaces: []tidepool.Interface{{Addr: netip.MustParsePrefix("10.0.0.1/24"), Link: a}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	gateway, err := tidepool.Open(tidepool.Config{
		Interfaces: []tidepool.Interface{{Addr: netip.MustParsePrefix("10.0.0.2/24"), Link: b}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gateway.Close()

	l, err := server.Listen("tcp", ":80")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "a page of a virtual host")
	}))

	forward, err := gateway.Publish("tcp", ":0", "10.0.0.1:80")
	if err != nil {
		log.Fatal(err)
	}
	defer forward.Cut()
	resp, err := http.Get("http://" + forward.Addr().String()) // over the machine's own network
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	fmt.Println(string(page), err)
	// Output: a page of a virtual host <nil>
}

// A gateway answers for every name server.
func ExampleNode_ForwardUDP() {
	a, b := tidepool.Pipe(0)
	gateway, err := tidepool.Open(tidepool.Config{
		Interfaces: []tidepool.Interface{{Addr: netip.MustParsePrefix("10.0.0.1/24"), Link: a}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gateway.Close()
	host, err := tidepool.Open(tidepool.Config{
		Interfaces: []tidepool.Interface{{Addr: netip.MustParsePrefix("10.0.0.2/24"), Link: b}},
		Routes: []tidepool.Route{{
			Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.0.0.1"),
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Close()

	gateway.ForwardUDP(func(r *tidepool.UDPRequest) {
		if r.Local().Port() != 53 {
			r.Reject()
			return
		}
		conn, err := r.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		query := make([]byte, 512)
		for {
			conn.SetReadDeadline(time.Now().Add(30 * time.Second)) // a UDP flow has no end
			n, err := conn.Read(query)
			if err != nil {
				return
			}
			fmt.Fprintf(conn, "%s? ask %v", query[:n], r.Local()) // a proxy would ask it
		}
	})

	conn, err := host.Dial("udp", "9.9.9.9:53")
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "example.org")
	answer := make([]byte, 512)
	n, err := conn.Read(answer)
	fmt.Println(string(answer[:n]), err)
	// Output: example.org? ask 9.9.9.9:53 <nil>
}

// The socket calls of founding document 004.
func ExampleNode_Vir() {
	a, router, c := threeNodes()
	defer a.Close()
	defer router.Close()
	defer c.Close()
	ctx := context.Background()

	server := a.Vir()
	listening, _ := server.Socket()
	server.Bind(listening, 5000)
	if err := server.Listen(listening); err != nil {
		log.Fatal(err)
	}
	client := c.Vir()
	s, _ := client.Socket()
	if err := client.Connect(ctx, s, netip.MustParseAddrPort("10.0.1.2:5000")); err != nil {
		log.Fatal(err)
	}
	accepted, err := server.Accept(ctx, listening)
	if err != nil {
		log.Fatal(err)
	}
	client.Write(ctx, s, []byte("tide"))
	client.ShutDown(s, tidepool.ShutWrite)
	buf := make([]byte, 10)
	n, _ := server.Read(ctx, accepted, buf)
	fmt.Println(listening, accepted, string(buf[:n]))
	_, err = client.Write(ctx, s, []byte("more"))
	fmt.Println(err)
	// Output:
	// 3 4 tide
	// socket 3: WriteBlockException: writing has been closed
}
