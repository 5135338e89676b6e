package tidepool_test

import (
	"fmt"
	"log"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool"
)

// A gateway answers whatever name server it is asked for.
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
			conn.SetReadDeadline(time.Now().Add(30 * time.Second)) // a flow has no end
			n, err := conn.Read(query)
			if err != nil {
				return
			}
			fmt.Fprintf(conn, "%s? ask %v", query[:n], r.Local()) // a proxy would
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
