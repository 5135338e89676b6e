package tidepool_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"

	"github.com/tidepool-net/tidepool"
)

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
