//go:build !unix

package portforward

import "net"

// receive waits with the memory that it will need.
func (m machineEnd) receive() (*[relayChunk]byte, int, error) {
	buf, _ := relayBuffers.Get().(*[relayChunk]byte)
	k, err := m.Read(buf[:])
	return buf, k, err
}

// leaves cannot be told here without reading what was said before.
func (m machineEnd) leaves() bool { return false }

// fails cannot be told here: who is reset behind a FIN is found out by what is written to it.
func (m machineEnd) fails(wait bool) error {
	if wait {
		return net.ErrClosed
	}
	return nil
}
