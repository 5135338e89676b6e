package link

import (
	"fmt"
	"net"
)

// FreePorts finds n different UDP ports of the loopback address that are free at this moment.
func FreePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, fmt.Errorf("link: find a free port: %w", err)
		}
		defer c.Close() // all stay open until the end, so that the ports differ
		at, ok := c.LocalAddr().(*net.UDPAddr)
		if !ok {
			return nil, fmt.Errorf("link: %v is not a UDP address", c.LocalAddr())
		}
		ports = append(ports, at.Port)
	}
	return ports, nil
}
