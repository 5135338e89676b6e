//go:build !unix

package portforward

import (
	"net"
	"net/netip"
)

// openEcho opens a raw socket for ICMP echo requests to an address.
func openEcho(dst netip.Addr) (c net.PacketConn, raw bool, err error) {
	if c, err = rawEcho(dst); err != nil {
		return nil, false, ErrNoEcho
	}
	return c, true, nil
}
