package tidepool_test

import (
	"fmt"
	"io"

	"github.com/tidepool-net/tidepool"
)

// An echo server of the sliding-fence transport, and a client.
func ExampleRCP() {
	server, router, client := threeNodes()
	defer server.Close()
	defer router.Close()
	defer client.Close()

	l, err := server.Listen("rcp", ":9000")
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

	c, err := client.Dial("rcp", "10.0.1.2:9000")
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
