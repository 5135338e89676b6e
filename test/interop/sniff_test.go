//go:build linux

package interop_test

import (
	"encoding/binary"
	"net"
	"os"
	"sync"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/capture"
)

// sniffer captures packets at the kernel's end of the link with a packet socket. A program such as
// dumpcap would lose the packets that it has not read when it is stopped.
type sniffer struct {
	bed  *bed
	fd   int
	quit int // an eventfd
	done sync.WaitGroup
	file *os.File
	out  *capture.Writer
	err  error
}

// sniff captures to a file until the test calls end.
func (b *bed) sniff(path string) *sniffer {
	b.t.Helper()
	s := &sniffer{bed: b}
	require.NoError(b.t, b.inside(s.open))
	var err error
	s.quit, err = unix.Eventfd(0, unix.EFD_CLOEXEC)
	require.NoError(b.t, err)
	s.file, err = os.Create(path)
	require.NoError(b.t, err)
	s.out, err = capture.New(s.file, []capture.Interface{{Name: device, Addr: b.ip(kernelIP)}}, 0)
	require.NoError(b.t, err)
	s.done.Go(s.run)
	return s
}

// open opens the socket with a buffer for all packets of the test.
func (s *sniffer) open() error {
	f, err := net.InterfaceByName(device)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	s.fd = fd
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return err
	}
	// all protocols, in network byte order: a single protocol would omit outgoing packets
	var all [2]byte
	binary.BigEndian.PutUint16(all[:], unix.ETH_P_ALL)
	return unix.Bind(fd, &unix.SockaddrLinklayer{
		Protocol: binary.NativeEndian.Uint16(all[:]), Ifindex: f.Index,
	})
}

// run writes packets to the file until end is called and no packet is left.
func (s *sniffer) run() {
	p, control := make([]byte, 1<<16), make([]byte, 128)
	over := false
	for s.err == nil {
		n, c, _, from, err := unix.Recvmsg(s.fd, p, control, 0)
		switch {
		case err == unix.EAGAIN && over:
			return
		case err == unix.EAGAIN:
			fds := []unix.PollFd{
				{Fd: int32(s.fd), Events: unix.POLLIN}, {Fd: int32(s.quit), Events: unix.POLLIN},
			}
			_, _ = unix.Poll(fds, -1) // if the poll is interrupted, the loop polls again
			over = fds[1].Revents != 0
		case err != nil:
			s.err = err
		default:
			way := capture.Inbound // from the kernel's point of view
			if ll, ok := from.(*unix.SockaddrLinklayer); ok && ll.Pkttype == unix.PACKET_OUTGOING {
				way = capture.Outbound
			}
			s.err = s.out.Packet(stamp(control[:c]).UnixNano(), 0, way, "", p[:n])
		}
	}
}

// stamp returns when the kernel received the packet.
func stamp(control []byte) time.Time {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(messages) == 0 ||
		len(messages[0].Data) < int(unsafe.Sizeof(unix.Timespec{})) {
		return time.Now()
	}
	return time.Unix((*unix.Timespec)(unsafe.Pointer(&messages[0].Data[0])).Unix())
}

// end writes the remaining packets and closes the file.
func (s *sniffer) end() {
	t := s.bed.t
	t.Helper()
	_, err := unix.Write(s.quit, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	require.NoError(t, err)
	s.done.Wait()
	require.NoError(t, s.err)
	stats, err := unix.GetsockoptTpacketStats(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	require.NoError(t, err)
	require.Zero(t, stats.Drops, "no packet was missed")
	require.NoError(t, s.out.Flush())
	require.NoError(t, s.file.Close())
	unix.Close(s.fd)
	unix.Close(s.quit)
}
