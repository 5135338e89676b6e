//go:build !linux

package link

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
)

// openSocket opens the one kind that every system has.
func openSocket(cfg Config, bind netip.AddrPort) (socket, int, error) {
	if cfg.Offload != OffloadAuto && cfg.Offload != OffloadPlain {
		return nil, -1, fmt.Errorf("no offload %v on %s", cfg.Offload, runtime.GOOS)
	}
	s, err := openPlain(cfg, bind)
	if err != nil {
		return nil, -1, err
	}
	return s, -1, nil
}

// trueBuffers has nothing to add: what was set is what there is.
func trueBuffers(*net.UDPConn, *Info) {}

// overflow is not told here.
func overflow(*net.UDPConn) uint64 { return 0 }
