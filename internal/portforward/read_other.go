//go:build !unix

package portforward

import "net"

// receive holds a buffer while it waits.
func (m machineEnd) receive() (*[relayChunk]byte, int, error) {
	buf, _ := relayBuffers.Get().(*[relayChunk]byte)
	k, err := m.Read(buf[:])
	return buf, k, err
}

// awaitFIN returns false: here a FIN can only be seen by reading the data before it.
func (m machineEnd) awaitFIN() bool { return false }

// failed returns nil: here a reset after a FIN is only found by writing.
func (m machineEnd) failed(wait bool) error {
	if wait {
		return net.ErrClosed
	}
	return nil
}
