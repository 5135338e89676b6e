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

// FreePort returns a free UDP port of the loopback address. It never returns a port twice.
func FreePort(tb testing.TB) uint16 {
	tb.Helper()
	for range portCount {
		if port := firstPort + rand.IntN(portCount); HoldPort(port) {
			return uint16(port)
		}
	}
	tb.Fatal("no free UDP port")
	return 0
}

// HoldPort reports whether a UDP port of the loopback address is free. A TCP listener then holds
// the number until the process exits, so that tests in other processes see that it is taken.
func HoldPort(port int) bool {
	addr := net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
	holder, err := net.ListenTCP("tcp4", &addr)
	if err != nil {
		return false
	}
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: addr.IP, Port: port})
	if err != nil {
		_ = holder.Close()
		return false
	}
	_ = c.Close()
	holders.Store(port, holder)
	return true
}

// holders keeps the listeners alive, because the garbage collector would close them.
var holders sync.Map
