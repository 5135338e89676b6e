package tidepool_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/netip"

	"github.com/tidepool-net/tidepool"
)

// Any program of this machine reads a page of a virtual host.
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
		io.WriteString(w, "a page behind the door")
	}))

	door, err := gateway.Publish("tcp", ":0", "10.0.0.1:80")
	if err != nil {
		log.Fatal(err)
	}
	defer door.Cut()
	resp, err := http.Get("http://" + door.Addr().String()) // the machine's own network
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	fmt.Println(string(page), err)
	// Output: a page behind the door <nil>
}
