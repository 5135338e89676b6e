package testenv

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Ports below the ranges from which systems assign ports themselves.
const (
	firstPort = 10_000
	portCount = 20_000
)

// FreePort returns a free UDP port of the loopback address. It never returns a port twice. A TCP
// listener holds the port number until the process exits, so that tests in other processes see that
// it is taken.
func FreePort(tb testing.TB) uint16 {
	tb.Helper()
	for range portCount {
		addr := net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: firstPort + rand.IntN(portCount)}
		holder, err := net.ListenTCP("tcp4", &addr)
		if err != nil {
			continue
		}
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: addr.IP, Port: addr.Port})
		if err != nil {
			_ = holder.Close()
			continue
		}
		_ = c.Close()
		holders.Store(addr.Port, holder)
		return uint16(addr.Port)
	}
	tb.Fatal("no free UDP port")
	return 0
}

// holders keeps the listeners alive, because the garbage collector would close them.
var holders sync.Map
