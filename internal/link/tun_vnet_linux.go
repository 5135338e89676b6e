package link

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// These are flags of TUNSETOFFLOAD (linux/if_tun.h). USO needs Linux 6.2.
const (
	tunChecksum = 0x01
	tunTSO4     = 0x02
	tunTSO6     = 0x04
	tunTSOECN   = 0x08
	tunUSO4     = 0x20
	tunUSO6     = 0x40
)

// hasVnet reports whether the kernel's TUN devices support virtio-net headers.
func hasVnet(fd int) bool {
	features, err := unix.IoctlGetInt(fd, unix.TUNGETFEATURES)
	return err == nil && features&unix.IFF_VNET_HDR != 0
}

// vnetTUN passes one train per call.
type vnetTUN struct {
	fd     int
	join   joiner
	joins  bool // trains are joined; false: the kernel has refused a joined packet
	rx, tx [vnetHeaderLen]byte
	in     [2]unix.Iovec
	out    []unix.Iovec
	packet [][]byte // pieces of the cursor's packet
	count  SocketCounters
}

// newVnetTUN enables the offloads that this package supports.
func newVnetTUN(fd int) (*vnetTUN, error) {
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETVNETHDRSZ, vnetHeaderLen); err != nil {
		return nil, os.NewSyscallError("TUNSETVNETHDRSZ", err)
	}
	f := &vnetTUN{fd: fd, joins: true}
	const tcp = tunChecksum | tunTSO4 | tunTSO6 | tunTSOECN
	for _, offer := range []int{tcp | tunUSO4 | tunUSO6, tcp, tunChecksum, 0} {
		err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offer)
		if err == nil {
			f.join.udp = offer&tunUSO4 != 0
			return f, nil
		}
		if !errors.Is(err, unix.EINVAL) {
			return nil, os.NewSyscallError("TUNSETOFFLOAD", err)
		}
	}
	return f, nil // if the offload flags fail, the kernel sends single packets
}

// read implements tunFile.
func (f *vnetTUN) read(b []byte) (burst, error) {
	f.in[0].Base = &f.rx[0]
	f.in[0].SetLen(vnetHeaderLen)
	f.in[1].Base = unsafe.SliceData(b)
	f.in[1].SetLen(min(len(b), ip6Len+mostJoined))
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READV, uintptr(f.fd),
			uintptr(unsafe.Pointer(&f.in[0])), uintptr(len(f.in)))
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 || n == 0 {
			return burst{}, readFailed(errno, &f.count)
		}
		f.count.Reads++
		h, ok := parseVnet(f.rx[:])
		if !ok || n <= vnetHeaderLen {
			return burst{}, nil
		}
		got, ok := h.split(b, int(n)-vnetHeaderLen)
		if !ok {
			return burst{}, nil
		}
		return got, nil
	}
}

// write implements tunFile.
func (f *vnetTUN) write(to *neighbor, t *buffer.Train, skip int) (int, error) {
	defer f.reset()
	at := cursor{train: t}
	for range skip {
		f.packet, _ = at.next(f.packet[:0])
	}
	f.join.trust = t.Checked
	done := skip // packets sent, or counted as lost
	f.join.reset()
	for i := skip; i < t.Count; i++ {
		var size int
		f.packet, size = at.next(f.packet[:0])
		if f.join.count > 0 {
			if f.joins && f.join.add(f.packet, size) {
				continue
			}
			if err := f.send(to); err != nil {
				return f.resume(err, to, t, done)
			}
			done = i
		}
		f.join.start(f.packet, size, f.joins && i+1 < t.Count)
	}
	if f.join.count > 0 {
		if err := f.send(to); err != nil {
			return f.resume(err, to, t, done)
		}
	}
	return t.Count, nil
}

// errApart means that the kernel accepts no joined packets.
var errApart = errors.New("link: the kernel does not accept coalesced packets")

// resume continues after the processed packets. After errApart it sends the rest one by one.
func (f *vnetTUN) resume(err error, to *neighbor, t *buffer.Train, done int) (int, error) {
	if errors.Is(err, errApart) {
		f.joins = false
		return f.write(to, t, done)
	}
	return done, err
}

// send writes the joined packet.
func (f *vnetTUN) send(to *neighbor) error {
	h := f.join.finish()
	h.put(&f.tx)
	f.out = append(f.out[:0], unix.Iovec{Base: &f.tx[0]})
	f.out[0].SetLen(vnetHeaderLen)
	for _, p := range f.join.pieces {
		if len(p) > 0 {
			f.out = append(f.out, unix.Iovec{Base: unsafe.SliceData(p)})
			f.out[len(f.out)-1].SetLen(len(p))
		}
	}
	for {
		_, _, errno := unix.RawSyscall(unix.SYS_WRITEV, uintptr(f.fd),
			uintptr(unsafe.Pointer(unsafe.SliceData(f.out))), uintptr(len(f.out)))
		switch {
		case errno == 0:
			f.count.Writes++
			to.sent(f.join.count, f.join.bytes)
			return nil
		case errno == unix.EINTR:
			continue
		case errno == unix.EINVAL && f.join.count > 1:
			return errApart
		}
		return writeFailed(errno, to, f.join.count)
	}
}

// reset drops references to the packets.
func (f *vnetTUN) reset() {
	f.join.reset()
	clear(f.out)
	clear(f.packet[:cap(f.packet)])
	f.out, f.packet = f.out[:0], f.packet[:0]
}

func (f *vnetTUN) counters(c *SocketCounters) {
	c.Reads += f.count.Reads
	c.Writes += f.count.Writes
	c.ReadErrors += f.count.ReadErrors
}

func (f *vnetTUN) close() error { return unix.Close(f.fd) }
