package portforward

import (
	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/node"
)

// join lets the node's loop relay between the two ends, without goroutines.
func (fw *Forward) join(near, far end) (*node.Relay, bool) {
	m, _ := near.(machineEnd)
	v, ok := far.(virtualEnd)
	raw, err := m.SyscallConn()
	if !ok || err != nil || fw.set.copies {
		return nil, false
	}
	fd := -1
	err = raw.Control(func(own uintptr) {
		fd, _ = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err != nil || fd < 0 {
		return nil, false
	}
	j, ok := node.StartRelay(v.conn, fd, fw.set.stallCheck, fw.count)
	if !ok {
		_ = unix.Close(fd)
		return nil, false
	}
	_ = m.TCPConn.Close() // the relay has a copy of the socket, so the runtime need not watch it
	return j, true
}
