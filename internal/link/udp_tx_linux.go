package link

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

const (
	txMessages = 128  // messages per call
	txPieces   = 4096 // pieces per call; more only if one train has more
)

// transmitter holds the messages for sendmmsg, each one train or a part of one.
type transmitter struct {
	msgs  []message
	iovs  []unix.Iovec
	hdrs  [txMessages]mmsghdr
	names [txMessages]sockaddr
	ctrl  [txMessages]segmentSize
}

// message is one datagram, or several of equal size that the kernel segments.
type message struct {
	to                 *neighbor
	iov, iovs          int // pieces of the message: iovs[iov:][:iovs]
	size, count, bytes int
}

// segmentSize is the control message of UDP_SEGMENT, padded to CMSG_SPACE.
type segmentSize struct {
	hdr  unix.Cmsghdr
	size uint16
}

func (tx *transmitter) init() {
	tx.msgs = make([]message, 0, txMessages)
	tx.iovs = make([]unix.Iovec, 0, txPieces)
	for i := range tx.ctrl {
		c := &tx.ctrl[i].hdr
		c.Level, c.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
		c.SetLen(unix.CmsgLen(2))
	}
}

// push implements socket.
func (s *batchSocket) push(to *neighbor, t *buffer.Train) bool {
	each := 1 // packets per message
	if s.gso {
		each = min(buffer.MaxTrainPackets, max(1, buffer.MaxTrainBytes/max(1, t.Size)))
	}
	tx := &s.tx
	messages := (t.Count + each - 1) / each
	if len(tx.msgs) > 0 && (len(tx.msgs)+messages > txMessages ||
		len(tx.iovs)+len(t.Pieces)+messages > txPieces) {
		return false
	}
	if messages == 1 {
		tx.addWhole(to, t)
	} else {
		tx.split(to, t, each)
	}
	return true
}

func (tx *transmitter) addWhole(to *neighbor, t *buffer.Train) {
	at := len(tx.iovs)
	end := uintptr(0) // end of the previous piece; adjacent memory extends that piece
	for _, p := range t.Pieces {
		if len(p) == 0 {
			continue
		}
		start := uintptr(unsafe.Pointer(unsafe.SliceData(p)))
		if start == end {
			v := &tx.iovs[len(tx.iovs)-1]
			v.SetLen(int(v.Len) + len(p))
		} else {
			tx.addPiece(p)
		}
		end = start + uintptr(len(p))
	}
	tx.msgs = append(tx.msgs, message{
		to: to, iov: at, iovs: len(tx.iovs) - at, size: t.Size, count: t.Count, bytes: t.Bytes,
	})
}

// split splits a train into messages of up to each packets. A piece may hold several packets, as in
// the transmit queue.
func (tx *transmitter) split(to *neighbor, t *buffer.Train, each int) {
	at := 0
	var rest []byte // rest of t.Pieces[at-1]
	for first := 0; first < t.Count; first += each {
		m := message{to: to, iov: len(tx.iovs), size: t.Size, count: min(each, t.Count-first)}
		m.bytes = min(m.count*t.Size, t.Bytes-first*t.Size)
		for left := m.bytes; left > 0; {
			if len(rest) == 0 {
				rest = t.Pieces[at]
				at++
			}
			n := min(left, len(rest))
			tx.addPiece(rest[:n])
			rest = rest[n:]
			left -= n
		}
		m.iovs = len(tx.iovs) - m.iov
		tx.msgs = append(tx.msgs, m)
	}
}

func (tx *transmitter) addPiece(p []byte) {
	if len(p) == 0 {
		return
	}
	tx.iovs = append(tx.iovs, unix.Iovec{Base: unsafe.SliceData(p)})
	tx.iovs[len(tx.iovs)-1].SetLen(len(p))
}

// flush implements socket.
func (s *batchSocket) flush() (int, error) {
	tx := &s.tx
	defer tx.reset()
	packets := 0
	for first := 0; first < len(tx.msgs); {
		n, errno := s.sendmmsg(first)
		if errno != 0 {
			var err error
			if n, err = s.failed(first, errno); err != nil {
				return packets, err
			}
		} else {
			s.count.Writes++
			if n < min(len(tx.msgs)-first, txMessages) {
				s.readErrorQueue() // reads the error that stopped the call
			}
			for _, m := range tx.msgs[first : first+n] {
				m.to.sent(m.count, m.bytes)
			}
		}
		for _, m := range tx.msgs[first : first+n] {
			packets += m.count
		}
		first += n
	}
	return packets, nil
}

// sendmmsg sends the messages from index first on, and returns how many the kernel accepted.
func (s *batchSocket) sendmmsg(first int) (int, unix.Errno) {
	tx := &s.tx
	n := min(len(tx.msgs)-first, txMessages)
	for i := range n {
		m := &tx.msgs[first+i]
		h := &tx.hdrs[i].hdr
		h.Name = (*byte)(unsafe.Pointer(&tx.names[i]))
		h.Namelen = tx.names[i].put(m.to.to, s.ip6)
		h.Iov = &tx.iovs[m.iov]
		h.SetIovlen(m.iovs)
		h.Control = nil
		h.SetControllen(0)
		if m.count > 1 {
			tx.ctrl[i].size = uint16(m.size)
			h.Control = (*byte)(unsafe.Pointer(&tx.ctrl[i]))
			h.SetControllen(int(unsafe.Sizeof(tx.ctrl[i])))
		}
	}
	for {
		k, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(s.fd),
			uintptr(unsafe.Pointer(&tx.hdrs[0])), uintptr(n), unix.MSG_DONTWAIT, 0, 0)
		if errno != unix.EINTR {
			return int(k), errno
		}
	}
}

// failed processes a message that the kernel refused. It returns 1 if the message is dropped, and 0
// if flush must retry it.
func (s *batchSocket) failed(first int, errno unix.Errno) (n int, err error) {
	m := &s.tx.msgs[first]
	switch {
	case errno == unix.EAGAIN:
		return 0, ErrWouldBlock
	case errno == unix.EBADF || errno == unix.ENOTSOCK:
		return 0, errno
	}
	if s.readErrorQueue() > 0 || errno == unix.ECONNREFUSED {
		return 0, nil // the error concerns an earlier packet, and this message was not sent
	}
	switch errno {
	case unix.EIO, unix.EINVAL, unix.EMSGSIZE:
		if m.count > 1 { // the real device cannot segment such trains
			s.gso = false
			s.tx.splitMessages(first)
			return 0, nil
		}
		m.to.lost(m.count, DropTooBig)
	default:
		m.to.lost(m.count, DropRefused)
		m.to.problem = errno
	}
	return 1, nil
}

// splitMessages splits the messages from index first on into messages of one packet.
func (tx *transmitter) splitMessages(first int) {
	old, iovs := tx.msgs, tx.iovs
	tx.msgs = append(make([]message, 0, cap(old)), old[:first]...)
	tx.iovs = make([]unix.Iovec, 0, len(iovs)+cap(iovs))
	for i := range tx.msgs { // these messages were sent, and only keep their indexes
		tx.msgs[i].iov, tx.msgs[i].iovs = 0, 0
	}
	var pieces [][]byte
	for _, m := range old[first:] {
		pieces = pieces[:0]
		for _, v := range iovs[m.iov : m.iov+m.iovs] {
			pieces = append(pieces, unsafe.Slice(v.Base, v.Len))
		}
		tx.split(m.to, &buffer.Train{
			Pieces: pieces, Size: m.size, Count: m.count, Bytes: m.bytes,
		}, 1)
	}
}

// reset drops references to the packets.
func (tx *transmitter) reset() {
	clear(tx.iovs)
	tx.msgs, tx.iovs = tx.msgs[:0], tx.iovs[:0]
}
