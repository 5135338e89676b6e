//go:build !unix

package portforward

import "net"

// receive needs a buffer while it waits.
func (m machineEnd) receive() (*[relayChunk]byte, int, error) {
	buf, _ := relayBuffers.Get().(*[relayChunk]byte)
	k, err := m.Read(buf[:])
	return buf, k, err
}

// awaitFIN returns false: on this system, a FIN can be detected only by reading the data before it.
func (m machineEnd) awaitFIN() bool { return false }

// failed detects nothing: on this system, only a write detects a reset after a FIN.
func (m machineEnd) failed(wait bool) error {
	if wait {
		return net.ErrClosed
	}
	return nil
}
