package tidepool

import (
	"io"

	"github.com/tidepool-net/tidepool/internal/link"
)

// PipeEnd is one end of a Pipe. Given to an Interface it joins a node to whatever
// is at the other end; otherwise a program reads and writes the packets.
type PipeEnd struct{ end *link.End }

var _ io.ReadWriteCloser = (*PipeEnd)(nil)

// Pipe returns the two ends of a link in memory. At most packets wait in each
// direction, and as many again are being read; 0: 1024. A node whose link is full
// waits, or drops if it is a router, and a program's Write waits. Between nodes,
// packets cross in trains, as TCP made them.
func Pipe(packets int) (a, b *PipeEnd) {
	x, y := link.Pipe(packets)
	return &PipeEnd{x}, &PipeEnd{y}
}

// Read waits for the next packet and copies it into p; what does not fit is cut
// off. It returns io.EOF once an end was closed and nothing is left.
func (e *PipeEnd) Read(p []byte) (int, error) { return e.inner().Read(p) }

// TryRead is Read for a program that does not wait: it returns false when there
// is no packet.
func (e *PipeEnd) TryRead(p []byte) (n int, ok bool) { return e.inner().TryRead(p) }

// Write sends a packet.
func (e *PipeEnd) Write(p []byte) (int, error) { return e.inner().Write(p) }

// Close ends the link in both directions. The other end may still read what is
// under way; what a node sends from then on is lost.
func (e *PipeEnd) Close() error { return e.inner().Close() }

// device makes a node's device of a link.
func device(l io.ReadWriteCloser) link.Device {
	if e, ok := l.(*PipeEnd); ok {
		return e.inner()
	}
	return link.Adapt(l)
}
