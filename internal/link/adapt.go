package link

import (
	"io"
	"sync"
)

// Adapted is a Device over a packet stream that a program implements: a Read or
// Write of it is a packet. Two goroutines wait for it.
type Adapted struct {
	*End
	stream io.ReadWriteCloser
	inner  *End
	wait   sync.WaitGroup
	once   sync.Once
}

// Adapt returns a device that carries what stream reads and writes. When the
// stream fails the device falls silent. Close closes the stream, which has to end
// a Read and a Write under way.
func Adapt(stream io.ReadWriteCloser) *Adapted {
	outer, inner := Pipe(0)
	a := &Adapted{End: outer, stream: stream, inner: inner}
	a.wait.Go(func() { pump(inner, stream) })
	a.wait.Go(func() { pump(stream, inner) })
	return a
}

// pump moves packets until from ends. One that to does not want is lost.
func pump(to io.Writer, from io.Reader) {
	buf := make([]byte, maxDatagram)
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
		_ = a.inner.Close() // it cannot fail
		err = a.stream.Close()
		a.wait.Wait()
	})
	return err
}
