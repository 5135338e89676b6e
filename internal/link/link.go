// Package link holds a node's network cards. A Device carries whole IP packets,
// a train at a time, and knows nothing of what is in them.
//
// The card of the course is emulated: UDP, where one datagram holds one packet.
// link.go is the contract, config.go what a card is told, udp.go the card,
// receive.go and transmit.go its two directions, neighbors.go who is at the
// other end. Beneath lies a socket (socket.go) of one of two kinds: udp_linux.go
// hands whole trains to the kernel (UDP_SEGMENT, UDP_GRO, sendmmsg, recvmmsg),
// udp_plain.go sends datagram by datagram and reads in a goroutine, as every
// system can. The UDP addresses are IPv4.
//
// The other card is a TUN device (tun.go, tun_linux.go), behind which is the
// kernel of the machine: its programs are on the virtual network then. Whole trains
// cross in one call where the kernel can do that (vnet.go, vnet_join.go).
package link

import (
	"errors"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// ErrWouldBlock is what ReadBatch says when nothing has arrived.
var ErrWouldBlock = errors.New("link: nothing to read")

// Device is one socket or TUN device that carries the packets of one interface, or of several
// in the old grammars. One goroutine owns it; no method blocks.
type Device interface {
	// ReadBatch fills frames with what has arrived. They are lent until the
	// next ReadBatch. n == len(frames) asks to be called again before waiting
	// on FD, for the rest may be inside already. It says ErrWouldBlock when
	// nothing is there; 0 and no error when all that came was discarded.
	ReadBatch(frames []buffer.Frame) (n int, err error)
	// WriteBatch takes n trains, each whole: it is sent, queued inside by
	// copy, or discarded and counted. n is short when the out queue is full.
	// Without trains it only sends what is queued, which is what to call when
	// FD is writable.
	WriteBatch(trains []buffer.Train) (n int, err error)
	// Room is how many packets WriteBatch takes now without refusing any.
	Room() int
	// Pending is how many packets are queued inside because the socket would
	// have blocked: while there are any, wait for FD to be writable.
	Pending() int
	// FD is what to wait on, or -1: then the device is a Feeder.
	FD() int
	// Close gives the socket back. What is queued is lost.
	Close() error
}

// Feeder is a Device that has no descriptor to wait on.
type Feeder interface {
	Device
	// Feed has ready called, on another goroutine, whenever there is something
	// to read after there was nothing; also at once if there is already.
	Feed(ready func())
}
