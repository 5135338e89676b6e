//go:build !linux

package link

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
)

// openSocket opens a plain socket, the only kind on this system.
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

// readBufferSizes does nothing: the sizes are those that were set.
func readBufferSizes(*net.UDPConn, *Info) {}

// overflow returns 0, because this system does not report the number.
func overflow(*net.UDPConn) uint64 { return 0 }
