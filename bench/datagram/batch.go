//go:build linux

package datagram

import (
	"encoding/binary"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Received is a datagram, or a run of datagrams of Size bytes each. The last one of a run may be
// shorter.
type Received struct {
	Data []byte
	Size int
}

// header is the kernel's struct mmsghdr.
type header struct {
	message unix.Msghdr
	length  uint32
	_       [4]byte
}

// Batch holds the memory for one system call that receives or sends several messages.
type Batch struct {
	socket   *Socket
	headers  []header
	pieces   []unix.Iovec
	buffers  [][]byte
	controls [][]byte
	received []Received
	count    int
	failed   error
}

const (
	bufferBytes  = 65536
	controlBytes = 64
)

// NewBatch returns a batch for count datagrams or runs of datagrams.
func (s *Socket) NewBatch(count int) *Batch {
	b := &Batch{
		socket: s, headers: make([]header, count), pieces: make([]unix.Iovec, count),
		received: make([]Received, count),
	}
	for i := range count {
		b.buffers = append(b.buffers, make([]byte, bufferBytes))
		b.controls = append(b.controls, make([]byte, controlBytes))
		b.pieces[i] = Piece(b.buffers[i])
		b.headers[i].message.Iov = &b.pieces[i]
		b.headers[i].message.SetIovlen(1)
		b.headers[i].message.Control = &b.controls[i][0]
	}
	return b
}

// Receive waits for datagrams. They are valid until the next call.
func (b *Batch) Receive() ([]Received, error) {
	if err := b.socket.raw.Read(b.receiveOnce); err != nil {
		return nil, err
	}
	if b.failed != nil {
		return nil, b.failed
	}
	for i := range b.count {
		data := b.buffers[i][:b.headers[i].length]
		b.received[i] = Received{data, max(1, b.size(i, len(data)))}
	}
	return b.received[:b.count], nil
}

func (b *Batch) receiveOnce(fd uintptr) bool {
	for i := range b.headers {
		b.headers[i].message.SetControllen(controlBytes)
	}
	n, _, e := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&b.headers[0])),
		uintptr(len(b.headers)), unix.MSG_DONTWAIT, 0, 0)
	b.count, b.failed = int(n), nil
	if e != 0 {
		b.count = 0
		if e != unix.EAGAIN && e != unix.ECONNREFUSED {
			b.failed = os.NewSyscallError("recvmmsg", e)
		}
	}
	return e != unix.EAGAIN
}

// size returns the length of each datagram in buffer i, except the last. The kernel reports this
// length only if the buffer holds more than one datagram.
func (b *Batch) size(i, whole int) int {
	if b.headers[i].message.Controllen < uint64(unix.CmsgLen(4)) {
		return whole
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b.controls[i][0]))
	if h.Level != unix.SOL_UDP || h.Type != unix.UDP_GRO {
		return whole
	}
	return int(binary.NativeEndian.Uint32(b.controls[i][unix.CmsgLen(0):]))
}

// SendAll sends size bytes of each buffer as a datagram, all in one call of sendmmsg. It returns
// how many the kernel accepted.
func (b *Batch) SendAll(size int) (int, error) {
	for i := range b.headers {
		m := &b.headers[i].message
		m.Name = (*byte)(unsafe.Pointer(&b.socket.to))
		m.Namelen = unix.SizeofSockaddrInet4
		m.Control = nil
		m.SetControllen(0)
		b.pieces[i].SetLen(size)
	}
	if err := b.socket.raw.Write(b.sendOnce); err != nil {
		return 0, err
	}
	return b.count, b.failed
}

func (b *Batch) sendOnce(fd uintptr) bool {
	n, _, e := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&b.headers[0])),
		uintptr(len(b.headers)), unix.MSG_DONTWAIT, 0, 0)
	b.count, b.failed = int(n), nil
	if e != 0 {
		b.count = 0
		if e != unix.EAGAIN {
			b.failed = os.NewSyscallError("sendmmsg", e)
		}
	}
	return e != unix.EAGAIN
}
