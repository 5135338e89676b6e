package link

import (
	"io"
	"sync"
)

// Adapted is a Device over a packet stream that a program implements: each Read or Write is one
// packet. It uses two goroutines.
type Adapted struct {
	*End
	stream io.ReadWriteCloser
	inner  *End
	wait   sync.WaitGroup
	once   sync.Once
}

// Adapt returns a device over stream. If the stream fails, the device carries no more packets.
// Close closes the stream, which must end a Read and a Write in progress.
func Adapt(stream io.ReadWriteCloser) *Adapted {
	outer, inner := Pipe(0)
	a := &Adapted{End: outer, stream: stream, inner: inner}
	a.wait.Go(func() { pump(inner, stream) })
	a.wait.Go(func() { pump(stream, inner) })
	return a
}

// pump copies packets until a read fails. Packets that cannot be written are lost.
func pump(to io.Writer, from io.Reader) {
	buf := make([]byte, maxPacket)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			_, _ = to.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// Close implements Device.
func (a *Adapted) Close() error {
	var err error
	a.once.Do(func() {
		_ = a.inner.Close() // closing a pipe never fails
		err = a.stream.Close()
		a.wait.Wait()
	})
	return err
}
