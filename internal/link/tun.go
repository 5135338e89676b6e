package link

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// ErrNoTUN is the error on a system without TUN devices.
var ErrNoTUN = errors.New("tun needs Linux; this is " + runtime.GOOS +
	": use a UDP link, or run the node in a Linux container or virtual machine")

// ErrGone is returned once when the kernel's end was deleted.
var ErrGone = errors.New("the device was deleted")

// maxDeviceName is IFNAMSIZ without its final zero (linux/if.h).
const maxDeviceName = 15

// defaultTUNQueue is the length of the kernel's queue: it holds a window of 4 MiB in packets of the
// default MTU. Linux's default of 500 packets would lose some of them.
const defaultTUNQueue = 3072

// TUNConfig configures an interface whose link leads to this machine's kernel.
type TUNConfig struct {
	// Device is the kernel's name of the device, up to 15 bytes. An existing device is opened.
	// Otherwise it is created, and Close deletes it.
	Device string
	// Interface is the node's end. It needs no neighbors: the kernel receives every packet.
	Interface Interface
	// Kernel are the addresses and prefix lengths of the kernel's end, at most one of each family.
	// The device gets them and is brought up. Without any, another program configures the
	// kernel's end.
	Kernel []netip.Prefix
	// Up brings the kernel's end up with IPv6 even without addresses in Kernel: the kernel receives
	// or sends router advertisements.
	Up bool
	// Routes are the prefixes that the kernel routes through the node. They need addresses of both
	// ends in their family. Close removes them.
	Routes []netip.Prefix
	// ReadPackets is the length of the kernel's queue; 0: 3072.
	ReadPackets int
	// Offload is how packets are passed to the kernel. OffloadAuto and OffloadGSO mean whole trains
	// if the kernel supports them. All other values mean one packet per call.
	Offload Offload
	// QueuePackets and QueueBytes limit the transmit queue, which is used only while the kernel
	// accepts no packets; 0: 2048 packets, 4 MiB.
	QueuePackets, QueueBytes int
}

func (c TUNConfig) withDefaults() TUNConfig {
	c.Interface.MTU = cmp.Or(c.Interface.MTU, defaultMTU)
	c.ReadPackets = cmp.Or(c.ReadPackets, defaultTUNQueue)
	c.QueuePackets = cmp.Or(c.QueuePackets, defaultQueuePackets)
	c.QueueBytes = cmp.Or(c.QueueBytes, defaultQueueBytes)
	return c
}

func (c TUNConfig) validate() error {
	switch {
	case c.Device == "" || len(c.Device) > maxDeviceName || c.Device == "." || c.Device == ".." ||
		strings.ContainsAny(c.Device, "/:% \t\n"):
		return fmt.Errorf("device name %q: must not be . or .., and must have 1 to %d "+
			"characters without '/', ':', '%%' or white space", c.Device, maxDeviceName)
	case slices.ContainsFunc(c.Kernel, is6) && c.Interface.MTU < minMTU6:
		return fmt.Errorf("MTU %d: must be at least %d for IPv6 (RFC 8200 §5)", c.Interface.MTU,
			minMTU6)
	case c.Interface.ID < 0 || c.Interface.ID > maxInterfaceID:
		return fmt.Errorf("interface number %d: must be 0 to %d", c.Interface.ID, maxInterfaceID)
	case c.ReadPackets < 0 || c.QueuePackets < 0 || c.QueueBytes < 0:
		return errors.New("sizes must not be negative")
	}
	for _, p := range c.Routes {
		if !c.gateway(p.Addr()).IsValid() {
			return fmt.Errorf("a route to %v needs addresses of its family for both ends", p)
		}
	}
	return nil
}

// minMTU6 is the smallest MTU of a link with IPv6 (RFC 8200 §5).
const minMTU6 = 1280

func is6(p netip.Prefix) bool { return p.Addr().Is6() }

// locals returns the node's addresses.
func (c *TUNConfig) locals() []netip.Addr {
	return append([]netip.Addr{c.Interface.Local}, c.Interface.Others...)
}

// gateway returns the node's address for the kernel's routes of a family, invalid if the kernel's
// end has no address of the family. A link-local address is used only if there is no other.
func (c *TUNConfig) gateway(of netip.Addr) (node netip.Addr) {
	for _, kernel := range c.Kernel {
		for _, a := range c.locals() {
			if kernel.Addr().Is4() != of.Is4() || a.Is4() != of.Is4() || !a.IsValid() {
				continue
			}
			if !a.IsLinkLocalUnicast() {
				return a
			}
			node = a
		}
	}
	return node
}

// TUNError is an error of opening a TUN device.
type TUNError struct {
	// Interface is the name of the node's interface, and Device is the kernel's name.
	Interface, Device string
	// Advice says what to do; it may be empty.
	Advice string
	// Err is the system's error.
	Err error
}

// Error names the interface, the device, the error, and what to do.
func (e *TUNError) Error() string {
	text := "link: interface " + e.Interface + ": tun:" + e.Device + ": " +
		strings.ReplaceAll(e.Err.Error(), "\n", "; ")
	if e.Advice != "" {
		text += " (" + e.Advice + ")"
	}
	return text
}

// Unwrap returns the system's error.
func (e *TUNError) Unwrap() error { return e.Err }

// tunFile reads and writes packets: one packet per call, or a train if the device has virtio-net
// headers.
type tunFile interface {
	// read reads to the start of b. It returns ErrWouldBlock if nothing has arrived. An empty burst
	// means that the packet was discarded.
	read(b []byte) (burst, error)
	// write sends a train without its first skip packets, and updates the counters of to. It
	// returns the index of the next packet, and ErrWouldBlock if the kernel did not accept that.
	write(to *neighbor, t *buffer.Train, skip int) (done int, err error)
	counters(*SocketCounters)
	close() error
}

// These are the sizes of the memory for one batch and for one read. A read returns at most the
// largest packet that the kernel can send, or that packet segmented for a small MTU. Larger trains
// are dropped.
const (
	tunReadBytes  = 512 << 10
	tunBurstBytes = 256 << 10
)

// TUN is a Device that leads to this machine's kernel. One goroutine owns it and calls its methods.
type TUN struct {
	cfg          TUNConfig
	file         tunFile // open device file; nil: the device is gone
	fd           int
	queued       int // maximum number of packets in the kernel's queue; 0: unknown
	offload      Offload
	on           iface
	kernel       neighbor // neighbor for every address
	queue        outQueue
	mem          []byte
	blocked      uint64
	last         SocketCounters // counters of closed files
	routes       []netip.Prefix // routes that were added to the kernel
	routeSockets []int          // sockets that added the routes, for IPv4 and IPv6

	adopted  bool // AdoptTUN made the device
	attached atomic.Bool
}

var _ Attacher = (*TUN)(nil)

// Attach implements Attacher, for a device that AdoptTUN made.
func (d *TUN) Attach(id int) error {
	if d.attached.Swap(true) {
		return ErrAttached
	}
	d.on.ID = id
	return nil
}

// Feed implements Feeder. It does nothing: the device has a descriptor.
func (d *TUN) Feed(func()) {}

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
		offload: OffloadTUN,
		on:      iface{Interface: cfg.Interface, up: true},
		queue:   outQueue{maxPackets: cfg.QueuePackets, maxBytes: cfg.QueueBytes},
	}
	d.kernel.on = &d.on
	return d
}

// ReadBatch implements Device. Consecutive packets of one size become one frame.
func (d *TUN) ReadBatch(frames []buffer.Frame) (int, error) {
	if d.file == nil {
		return 0, ErrWouldBlock
	}
	n, at, packets := 0, 0, 0
	grows := false // the last frame may get another packet
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

// arrived counts the packets of a read and returns their number.
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

// readError processes a failed read after n frames.
func (d *TUN) readError(n int, err error) error {
	switch {
	case errors.Is(err, ErrGone):
		d.closeDeleted()
		return tunError(d.cfg, ErrGone, "")
	case n > 0:
		return nil
	}
	return err
}

// Gone reports whether the kernel's end was deleted and not reopened.
func (d *TUN) Gone() bool { return d.file == nil }

// Down reports whether the kernel's end was down when the last packet was sent.
func (d *TUN) Down() bool { return d.kernel.down }

// Reopen opens or creates the device again. Any goroutine may call it. The owner passes the result
// to Replace if d is gone.
func (d *TUN) Reopen() (*TUN, error) {
	if d.adopted {
		return nil, tunError(d.cfg, ErrGone, "its network namespace has ended: start its "+
			"program again")
	}
	return OpenTUN(d.cfg)
}

// Replace makes d use the descriptor of a device that Reopen has opened. It changes FD.
func (d *TUN) Replace(fresh *TUN) {
	d.file, d.fd, d.offload = fresh.file, fresh.fd, fresh.offload
	d.queued, d.routes, d.routeSockets = fresh.queued, fresh.routes, fresh.routeSockets
}

// closeDeleted closes the descriptor of a deleted device, which would stay readable forever.
func (d *TUN) closeDeleted() {
	d.last = d.Socket()
	d.routes = nil     // the kernel removed them with the device
	_ = d.file.close() // the device no longer exists
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
		if d.queue.packets > 0 { // the queue must be sent first
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
			d.closeDeleted()
			d.kernel.lost(t.Count-done, DropGone)
			return i + 1, tunError(d.cfg, ErrGone, "")
		case err != nil:
			return i, err
		}
	}
	return len(trains), nil
}

// drain sends the queue until the kernel accepts no more.
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
			d.closeDeleted()
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

// FD implements Device. It returns -1 after the device was deleted.
func (d *TUN) FD() int { return d.fd }

// Close implements Device. It deletes a device that OpenTUN created.
func (d *TUN) Close() error {
	if d.file == nil {
		return nil
	}
	d.removeRoutes()
	return d.file.close()
}

// Counters returns the counters of the interface with the node's number id.
func (d *TUN) Counters(id int) Counters {
	if id != d.on.ID {
		return Counters{}
	}
	return d.on.counters
}

// Socket returns the counters of the calls to the kernel.
func (d *TUN) Socket() SocketCounters {
	s := d.last
	s.Blocked = d.blocked
	if d.file != nil {
		d.file.counters(&s)
	}
	return s
}

// Info returns the state of the device.
func (d *TUN) Info() Info { return Info{Offload: d.offload, RecvPackets: d.queued} }

// Neighbors returns the kernel's addresses, if they are configured.
func (d *TUN) Neighbors(id int) (list []NeighborInfo) {
	if id == d.on.ID {
		for _, p := range d.cfg.Kernel {
			list = append(list, NeighborInfo{Addr: p.Addr()})
		}
	}
	return list
}
