// Package link contains a node's network devices. A Device carries whole IP packets in trains and
// knows nothing of their contents.
//
// The course's device is emulated over UDP: one datagram holds one packet. link.go is the
// interface, config.go the configuration, udp.go the device, receive.go and transmit.go its two
// directions, and neighbors.go its neighbors. Its socket (socket.go) has one of two kinds:
// udp_linux.go passes whole trains to the kernel (UDP_SEGMENT, UDP_GRO, sendmmsg, recvmmsg);
// udp_plain.go sends single datagrams and reads in a goroutine, as every system can. The
// addresses of a link are IPv4 or IPv6.
//
// The other device is a TUN device (tun.go, tun_linux.go), which connects the machine's kernel, and
// so its programs, to the virtual network. Whole trains cross in one call if the kernel supports it
// (vnet.go, vnet_join.go).
package link

import (
	"errors"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// ErrWouldBlock is returned by ReadBatch when nothing has arrived.
var ErrWouldBlock = errors.New("link: nothing to read")

// maxPacket is the length of the longest packet: IPv6 does not count its own header of 40 bytes
// (RFC 8200 §3).
const maxPacket = 40 + 65535

// Device is one socket or TUN device that carries the packets of one interface, or of several with
// the old syntax. One goroutine owns it; no method blocks.
type Device interface {
	// ReadBatch fills frames with received packets, which are valid until the next ReadBatch. If n
	// is len(frames), call it again before waiting on FD, because more may be buffered. It returns
	// ErrWouldBlock if nothing has arrived, and 0 without an error if everything was discarded.
	ReadBatch(frames []buffer.Frame) (n int, err error)
	// WriteBatch processes n trains: each is sent, copied to the queue, or discarded and counted. n
	// is short if the queue is full. Without trains, it only sends the queue. Call it this way when
	// FD is writable.
	WriteBatch(trains []buffer.Train) (n int, err error)
	// Room returns how many packets WriteBatch accepts now.
	Room() int
	// Pending returns how many packets are queued because the socket would have blocked. While
	// there are any, wait until FD is writable.
	Pending() int
	// FD returns the descriptor to wait on, or -1. A Device without one is a Feeder.
	FD() int
	// Close closes the socket. Queued packets are lost.
	Close() error
}

// Feeder is a Device that may have packets which its descriptor does not show.
type Feeder interface {
	Device
	// Feed sets a function that any goroutine may call: when such data arrives at an empty device,
	// and in Feed itself if there already is data.
	Feed(ready func())
}
