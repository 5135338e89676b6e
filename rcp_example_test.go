package tidepool_test

import (
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool"
)

// An echo server of the sliding-fence transport, and a client.
func ExampleRCP() {
	server, router, client := threeNodes()
	defer server.Close()
	defer router.Close()
	defer client.Close()

	// A machine that is busy with other things may pause for long.
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
