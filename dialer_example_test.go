package tidepool_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/tidepool-net/tidepool"
)

// From a port that the server knows.
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

// What a connection knows of itself.
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

// A node of a network that is written down, such as those in nets/.
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
