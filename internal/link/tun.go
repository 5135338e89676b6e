package link

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// ErrNoTUN is a system without TUN devices.
var ErrNoTUN = errors.New("tun needs Linux; this is " + runtime.GOOS +
	": use a UDP link, or run the node in a Linux container or virtual machine")

// ErrGone is what a TUN device says, once, when the kernel's end was deleted.
var ErrGone = errors.New("the device was deleted")

// maxDeviceName is IFNAMSIZ without its closing zero (linux/if.h).
const maxDeviceName = 15

// defaultTUNQueue is how many packets the kernel may hold for us: what a window
// of 4 MiB is in packets of the default MTU. Linux's own 500 would lose them.
const defaultTUNQueue = 3072

// TUNConfig describes an interface whose link leads to the kernel of this
// machine.
type TUNConfig struct {
	// Device is the kernel's name for the device, of up to 15 bytes. It is
	// opened if it exists, else created, and then gone again after Close.
	Device string
	// Interface is the node's end. It needs no neighbours: whatever address a
	// packet is for, the kernel gets it.
	Interface Interface
	// Kernel is the address of the kernel's end and the length of the link's
	// prefix. The device is given both, and brought up. Invalid: the kernel's
	// end is somebody else's to set up.
	Kernel netip.Prefix
	// Routes are what the kernel is told to reach by the node; it needs Kernel. Close
	// takes them back.
	Routes []netip.Prefix
	// ReadPackets is how many packets the kernel may hold for us; 0: 3072.
	ReadPackets int
	// Offload is how packets reach the kernel: 0 has whole trains cross in one call
	// if the kernel can; anything but OffloadGSO is a packet a call.
	Offload Offload
	// QueuePackets and QueueBytes bound the out queue, which is used only
	// while the kernel takes nothing; 0: 2048 packets, 4 MiB.
	QueuePackets, QueueBytes int
}

func (c TUNConfig) withDefaults() TUNConfig {
	setDefault(&c.Interface.MTU, defaultMTU)
	setDefault(&c.ReadPackets, defaultTUNQueue)
	setDefault(&c.QueuePackets, defaultQueuePackets)
	setDefault(&c.QueueBytes, defaultQueueBytes)
	return c
}

func (c TUNConfig) validate() error {
	switch {
	case c.Device == "" || len(c.Device) > maxDeviceName || c.Device == "." || c.Device == ".." ||
		strings.ContainsAny(c.Device, "/:% \t\n"):
		return fmt.Errorf("a device's name must have 1 to %d characters without / : %% or blanks",
			maxDeviceName)
	case c.Kernel.IsValid() && !c.Kernel.Addr().Is4():
		return errNoIPv4
	case len(c.Routes) > 0 && !c.Kernel.IsValid():
		return errors.New("routes need an address for the kernel's end")
	case c.Interface.ID < 0 || c.Interface.ID > maxInterfaceID:
		return fmt.Errorf("number %d", c.Interface.ID)
	case c.ReadPackets < 0 || c.QueuePackets < 0 || c.QueueBytes < 0:
		return errors.New("a negative size")
	}
	return nil
}

// TUNError is a TUN device that cannot be had.
type TUNError struct {
	// Interface is the name of the interface that wanted it, Device the kernel's.
	Interface, Device string
	// Advice is what may help; it can be empty.
	Advice string
	// Err is what the system said.
	Err error
}

// Error names the interface and the device, and says what may help.
func (e *TUNError) Error() string {
	text := "link: interface " + e.Interface + ": tun:" + e.Device + ": " + e.Err.Error()
	if e.Advice != "" {
		text += " (" + e.Advice + ")"
	}
	return text
}

// Unwrap returns what the system said.
func (e *TUNError) Unwrap() error { return e.Err }

// tunFile is where packets enter and leave the kernel: one a call, or with a
// virtio-net header a train.
type tunFile interface {
	// read fetches what arrived into the beginning of b. It says ErrWouldBlock
	// when there is nothing; a burst without bytes was discarded.
	read(b []byte) (burst, error)
	// write sends the packets of a train from the skip-th on, accounting for
	// them at to. It returns how many it is done with, and ErrWouldBlock if
	// the kernel would not take the next.
	write(to *neighbor, t *buffer.Train, skip int) (done int, err error)
	counters(*SocketCounters)
	close() error
}

// Memory for one batch, and for one read: the largest packet that the kernel could
// have been told to send, or what a train of it is in packets of a small MTU. A
// train of more is dropped.
const (
	tunReadBytes  = 512 << 10
	tunBurstBytes = 256 << 10
)

// TUN is a Device behind which is the kernel of this machine. One goroutine
// owns it and calls all of its methods.
type TUN struct {
	cfg     TUNConfig
	file    tunFile // nil: the device is gone
	fd      int
	queued  int // packets that the kernel holds for us at most; 0: unknown
	way     Offload
	on      iface
	kernel  neighbor // at whatever address
	queue   outQueue
	mem     []byte
	blocked uint64
	last    SocketCounters // of files that are gone
	routes  []netip.Prefix // that the kernel was told
	teller  int            // the socket that told it, or -1
}

var _ Device = (*TUN)(nil)

// OpenTUN opens or creates a TUN device. Its errors are TUNErrors.
func OpenTUN(cfg TUNConfig) (*TUN, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, tunError(cfg, err, "")
	}
	return openTUN(cfg)
}

func tunError(cfg TUNConfig, err error, advice string) error {
	return &TUNError{
		Interface: cfg.Interface.Name, Device: cfg.Device, Err: err, Advice: advice,
	}
}

func newTUN(cfg TUNConfig, file tunFile, fd int) *TUN {
	d := &TUN{
		cfg: cfg, file: file, fd: fd, mem: make([]byte, tunReadBytes),
		way: OffloadTUN, teller: -1,
		on:    iface{Interface: cfg.Interface, up: true},
		queue: outQueue{maxPackets: cfg.QueuePackets, maxBytes: cfg.QueueBytes},
	}
	d.kernel.on = &d.on
	return d
}

// ReadBatch implements Device. Packets that arrive in a row and are of one size
// make one frame.
func (d *TUN) ReadBatch(frames []buffer.Frame) (int, error) {
	if d.file == nil {
		return 0, ErrWouldBlock
	}
	n, at, packets := 0, 0, 0
	grows := false // the last frame may take another packet
	for n < len(frames) && len(d.mem)-at >= tunBurstBytes {
		got, err := d.file.read(d.mem[at:])
		if err != nil {
			return n, d.readError(n, err)
		}
		if got.bytes == 0 {
			d.on.counters.Drops[DropMalformed]++
			continue
		}
		count := d.arrived(got)
		f := &frames[max(0, n-1)]
		if grows && got.size <= f.Size && got.checked == f.Checked &&
			packets+count <= buffer.MaxTrainPackets {
			f.Data = f.Data[:len(f.Data)+got.bytes]
			packets += count
		} else {
			f = &frames[n]
			*f = buffer.Frame{
				Data: d.mem[at : at+got.bytes], Size: got.size, Iface: d.on.ID,
				Checked: got.checked,
			}
			packets = count
			n++
		}
		grows = got.bytes%f.Size == 0
		at += got.bytes
	}
	return n, nil
}

// arrived counts what a read brought and returns how many packets it is.
func (d *TUN) arrived(got burst) int {
	c := &d.on.counters
	packets := (got.bytes + got.size - 1) / got.size
	c.RxPackets += uint64(packets)
	c.RxBytes += uint64(got.bytes)
	if got.size > d.on.MTU {
		c.Oversize += uint64(packets)
	}
	return packets
}

// readError decides what becomes of a read that failed behind n frames.
func (d *TUN) readError(n int, err error) error {
	switch {
	case errors.Is(err, ErrGone):
		d.leave()
		return tunError(d.cfg, ErrGone, "")
	case n > 0:
		return nil
	}
	return err
}

// Gone reports whether the kernel's end was deleted, and not opened again since.
func (d *TUN) Gone() bool { return d.file == nil }

// Down reports whether the kernel's end was not up when the last packet was sent.
func (d *TUN) Down() bool { return d.kernel.down }

// Anew opens or creates the device once more: a goroutine that does not own d may do
// so. Replace has d, if its own is gone, go on with it.
func (d *TUN) Anew() (*TUN, error) { return OpenTUN(d.cfg) }

// Replace takes over a device that Anew has opened. FD is another then.
func (d *TUN) Replace(fresh *TUN) {
	d.file, d.fd, d.way = fresh.file, fresh.fd, fresh.way
	d.queued, d.routes, d.teller = fresh.queued, fresh.routes, fresh.teller
}

// leave gives back the descriptor of a device that is gone: it would be
// readable for ever.
func (d *TUN) leave() {
	d.last = d.Socket()
	d.routes = nil     // the kernel has forgotten them with the device
	_ = d.file.close() // there is nothing behind it any more
	d.file, d.fd = nil, -1
	d.kernel.lost(d.queue.packets, DropGone)
	d.queue.pop(d.queue.packets)
}

// WriteBatch implements Device.
func (d *TUN) WriteBatch(trains []buffer.Train) (int, error) {
	if err := d.drain(); err != nil {
		return 0, err
	}
	for i := range trains {
		t := &trains[i]
		if t.Bytes == 0 {
			continue
		}
		if d.file == nil {
			d.kernel.lost(t.Count, DropGone)
			continue
		}
		if d.queue.packets > 0 { // they go first
			if !d.queue.fits(t) {
				return i, nil
			}
			d.queue.push(&d.kernel, t, 0)
			continue
		}
		done, err := d.file.write(&d.kernel, t, 0)
		switch {
		case errors.Is(err, ErrWouldBlock):
			d.blocked++
			d.queue.push(&d.kernel, t, done)
		case errors.Is(err, ErrGone):
			d.leave()
			d.kernel.lost(t.Count-done, DropGone)
			return i + 1, tunError(d.cfg, ErrGone, "")
		case err != nil:
			return i, err
		}
	}
	return len(trains), nil
}

// drain sends what is queued, until the kernel takes no more.
func (d *TUN) drain() error {
	for d.queue.packets > 0 {
		to, t := d.queue.train(d.queue.head)
		done, err := d.file.write(to, t, 0)
		d.queue.pop(done)
		switch {
		case errors.Is(err, ErrWouldBlock):
			d.blocked++
			return nil
		case errors.Is(err, ErrGone):
			d.leave()
			return tunError(d.cfg, ErrGone, "")
		case err != nil:
			return err
		}
	}
	return nil
}

// Room implements Device.
func (d *TUN) Room() int { return d.queue.room(d.on.MTU) }

// Pending implements Device.
func (d *TUN) Pending() int { return d.queue.packets }

// FD implements Device. It is -1 once the device is gone.
func (d *TUN) FD() int { return d.fd }

// Close implements Device. A device that Open created goes with it.
func (d *TUN) Close() error {
	if d.file == nil {
		return nil
	}
	d.forgetRoutes()
	return d.file.close()
}

// Counters returns the counts of the interface with the node's number id.
func (d *TUN) Counters(id int) Counters {
	if id != d.on.ID {
		return Counters{}
	}
	return d.on.counters
}

// Socket returns the counts of the calls to the kernel.
func (d *TUN) Socket() SocketCounters {
	s := d.last
	s.Blocked = d.blocked
	if d.file != nil {
		d.file.counters(&s)
	}
	return s
}

// Info tells what the device turned out to be.
func (d *TUN) Info() Info { return Info{Offload: d.way, RecvPackets: d.queued} }

// Neighbors lists the kernel's address, if the device was told to set it.
func (d *TUN) Neighbors(id int) []NeighborInfo {
	if id != d.on.ID || !d.cfg.Kernel.IsValid() {
		return nil
	}
	return []NeighborInfo{{Addr: d.cfg.Kernel.Addr().As4()}}
}
