//go:build !unix

package door

// receive waits with the memory that it will need.
func (m machineEnd) receive() (*[relayChunk]byte, int, error) {
	buf, _ := relayBuffers.Get().(*[relayChunk]byte)
	k, err := m.Read(buf[:])
	return buf, k, err
}
