package link

import (
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

const tunPath = "/dev/net/tun"

// openTUN attaches to the device and, if configured, sets up the kernel's end.
func openTUN(cfg TUNConfig) (*TUN, error) {
	fd, err := unix.Open(tunPath, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, tunError(cfg, &fs.PathError{Op: "open", Path: tunPath, Err: err},
			openAdvice(err))
	}
	d, err := attach(cfg, fd)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return d, nil
}

// attach connects fd to the device.
func attach(cfg TUNConfig, fd int) (*TUN, error) {
	req, err := unix.NewIfreq(cfg.Device)
	if err != nil {
		return nil, tunError(cfg, err, "")
	}
	vnet := (cfg.Offload == OffloadAuto || cfg.Offload == OffloadGSO) && hasVnet(fd)
	flags := uint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if vnet {
		flags |= unix.IFF_VNET_HDR
	}
	req.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return nil, tunError(cfg, err, attachAdvice(cfg.Device, err))
	}
	d := newTUN(cfg, &plainTUN{fd: fd}, fd)
	if vnet {
		file, err := newVnetTUN(fd)
		if err != nil {
			return nil, tunError(cfg, err, "")
		}
		d.file, d.offload = file, OffloadTUNGSO
	}
	if d.queued, err = setUpKernel(cfg); err != nil {
		return nil, err
	}
	if err := d.addRoutes(); err != nil {
		return nil, err
	}
	return d, nil
}

// plainTUN passes one packet per call.
type plainTUN struct {
	fd     int
	iovs   []unix.Iovec
	pieces [][]byte
	count  SocketCounters
}

// read implements tunFile.
func (f *plainTUN) read(b []byte) (burst, error) {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(f.fd),
			uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		if errno == 0 && n > 0 {
			f.count.Reads++
			return burst{bytes: int(n), size: int(n)}, nil
		}
		if errno != unix.EINTR {
			return burst{}, readFailed(errno, &f.count)
		}
	}
}

func readFailed(errno unix.Errno, count *SocketCounters) error {
	switch errno {
	case 0, unix.EBADFD: // the device was deleted
		return ErrGone
	case unix.EAGAIN:
		return ErrWouldBlock
	case unix.EBADF:
		return errno
	default:
		count.ReadErrors++
		return ErrWouldBlock
	}
}

// write implements tunFile.
func (f *plainTUN) write(to *neighbor, t *buffer.Train, skip int) (int, error) {
	defer f.reset()
	at := cursor{train: t}
	for i := range t.Count {
		var size int
		f.pieces, size = at.next(f.pieces[:0])
		if i < skip {
			continue
		}
		f.iovs = f.iovs[:0]
		for _, p := range f.pieces {
			f.iovs = append(f.iovs, unix.Iovec{Base: unsafe.SliceData(p)})
			f.iovs[len(f.iovs)-1].SetLen(len(p))
		}
		if err := f.packet(to, size); err != nil {
			return i, err
		}
	}
	return t.Count, nil
}

// reset drops references to the packets.
func (f *plainTUN) reset() {
	clear(f.iovs)
	clear(f.pieces[:cap(f.pieces)])
	f.iovs, f.pieces = f.iovs[:0], f.pieces[:0]
}

// packet sends the packet in iovs. It counts packets that the kernel refuses.
func (f *plainTUN) packet(to *neighbor, size int) error {
	for {
		_, _, errno := unix.RawSyscall(unix.SYS_WRITEV, uintptr(f.fd),
			uintptr(unsafe.Pointer(unsafe.SliceData(f.iovs))), uintptr(len(f.iovs)))
		if errno == 0 {
			f.count.Writes++
			to.sent(1, size)
			return nil
		}
		if errno != unix.EINTR {
			return writeFailed(errno, to, 1)
		}
	}
}

// writeFailed converts the error of a write. It counts packets that the kernel refuses.
func writeFailed(errno unix.Errno, to *neighbor, packets int) error {
	switch errno {
	case unix.EAGAIN:
		return ErrWouldBlock
	case unix.EBADFD:
		return ErrGone
	case unix.EBADF:
		return errno
	case unix.EIO: // the device is down
		to.lost(packets, DropKernelDown)
	default:
		to.lost(packets, DropRefused)
	}
	return nil
}

func (f *plainTUN) counters(c *SocketCounters) {
	c.Reads += f.count.Reads
	c.Writes += f.count.Writes
	c.ReadErrors += f.count.ReadErrors
}

func (f *plainTUN) close() error { return unix.Close(f.fd) }
