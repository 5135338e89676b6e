package node

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Devices are the devices of a node's interfaces: UDP sockets, TUN devices and links that the
// program provides. The token of a device is its index in list. Only the loop uses the fields.
type Devices struct {
	node     *Node
	list     []link.Device
	byIface  []int             // token of each interface
	sharing  []int             // number of interfaces of each device
	impaired []*impairedDevice // impairments by token; nil if there were never any
	attached []bool            // interfaces whose device is open
	blocked  []bool            // devices that wait to become writable
	gone     []int             // tokens of deleted devices, for takeDown
	guest    guest

	ready   []int          // tokens to read in this iteration
	again   []int          // tokens of devices with more to read
	frames  []buffer.Frame // frames of one read
	packets [][]byte       // packets of one frame
	room    []int          // room of each interface
	batch   *buffer.Batch
}

// open opens the devices: one for each interface, or one socket for all.
func (ds *Devices) open() error {
	if _, err := parseOffload(ds.node.cfg.Offload); err != nil {
		return err
	}
	w := &ds.node.cfg.Network
	ds.byIface = make([]int, len(w.Links))
	ds.room = make([]int, len(w.Links))
	ds.frames, ds.batch = make([]buffer.Frame, framesPerRead), buffer.NewBatch()
	ds.attached = make([]bool, len(w.Links))
	for _, faces := range w.groups() {
		list := w.linkInterfaces(faces)
		d, err := ds.node.cfg.Devices[list[0].Name], error(nil)
		if d != nil {
			err = attach(d, list[0])
		} else {
			d, err = ds.openOne(w, faces)
		}
		if err != nil {
			return err
		}
		if err := ds.add(d, list); err != nil {
			return err
		}
	}
	return nil
}

// parseOffload parses Config.Offload. An empty word means auto.
func parseOffload(word string) (link.Offload, error) {
	return link.ParseOffload(cmp.Or(word, link.OffloadAuto.String()))
}

// linkInterfaces converts interfaces for package link.
func (w *Network) linkInterfaces(faces []int) (list []link.Interface) {
	for _, i := range faces {
		f := &w.Stack.Interfaces[i]
		face := link.Interface{Name: f.Name, ID: i, Local: f.Addr.Addr(), MTU: f.MTU}
		for _, p := range f.IPv6 {
			face.Others = append(face.Others, p.Addr())
		}
		for _, nb := range w.Neighbors {
			if nb.Iface != f.Name {
				continue
			}
			to := link.Neighbor{Addr: nb.Addr, Host: nb.UDP.Host, Port: nb.UDP.Port}
			at := slices.IndexFunc(face.Neighbors, func(o link.Neighbor) bool {
				return o.Host == to.Host && o.Port == to.Port
			})
			if at < 0 { // the neighbor is not listed yet
				at = len(face.Neighbors)
				face.Neighbors = append(face.Neighbors, to)
			}
			known := &face.Neighbors[at]
			if known.Addr != nb.Addr {
				known.Others = append(known.Others, nb.Addr)
			}
			if nb.Addr.Is6() && !nb.Addr.IsLinkLocalUnicast() {
				known.Others = append(known.Others, ip.LinkLocal(nb.Addr))
			}
		}
		list = append(list, face)
	}
	return list
}

// openOne opens the device of interfaces that share it.
func (ds *Devices) openOne(w *Network, faces []int) (link.Device, error) {
	list, l := w.linkInterfaces(faces), &w.Links[faces[0]]
	if l.TUN != nil {
		return ds.openTUN(l.TUN, list[0], &w.Stack.Interfaces[faces[0]])
	}
	offload, err := parseOffload(ds.node.cfg.Offload)
	if err != nil {
		return nil, err
	}
	d, err := link.Open(link.Config{
		Host: l.UDP.Host, Port: l.UDP.Port, Interfaces: list, Offload: offload,
		Exchange: ds.node.cfg.Exchange, Lookup: ds.node.cfg.lookup,
		ResolveEvery: ds.node.cfg.resolveEvery,
	})
	if err != nil {
		return nil, err // d would be a nil pointer in a non-nil link.Device
	}
	return d, nil
}

func (ds *Devices) openTUN(t *TUN, face link.Interface, f *stack.Interface) (link.Device, error) {
	offload, err := parseOffload(cmp.Or(ds.node.cfg.TUNOffload, ds.node.cfg.Offload))
	if err != nil {
		return nil, err
	}
	cfg := link.TUNConfig{
		Device: t.Device, Interface: face, Offload: offload, Routes: t.Routes,
		Up: t.Auto || t.Advertise,
	}
	for _, a := range t.Kernel {
		for _, p := range append([]netip.Prefix{f.Addr}, f.IPv6...) {
			if p.Contains(a) {
				cfg.Kernel = append(cfg.Kernel, netip.PrefixFrom(a, p.Bits()))
			}
		}
	}
	d, err := link.OpenTUN(cfg)
	if err != nil {
		return nil, err // d would be a nil pointer in a non-nil link.Device
	}
	return d, nil
}

// attach attaches a program's link to the node.
func attach(d link.Device, face link.Interface) error {
	a, ok := d.(link.Attacher)
	if !ok {
		return fmt.Errorf("node: interface %s: %T cannot be attached", face.Name, d)
	}
	if err := a.Attach(face.ID); err != nil {
		return fmt.Errorf("node: interface %s: %w", face.Name, err)
	}
	return nil
}

// add gives a device the next token.
func (ds *Devices) add(d link.Device, faces []link.Interface) error {
	token := len(ds.list)
	ds.list, ds.blocked = append(ds.list, d), append(ds.blocked, false)
	ds.sharing = append(ds.sharing, len(faces))
	for _, f := range faces {
		ds.byIface[f.ID], ds.attached[f.ID] = token, true
	}
	if err := ds.impairLinks(token, faces); err != nil {
		return err
	}
	return ds.watch(d, token)
}

// watch makes the waiter report when the device is readable.
func (ds *Devices) watch(d link.Device, token int) error {
	if f, ok := d.(link.Feeder); ok {
		f.Feed(ds.node.waiter.Feed(token, ds.node.leading.deliver))
	}
	if d.FD() < 0 {
		return nil
	}
	return ds.node.waiter.Add(d.FD(), token)
}

func (ds *Devices) inProcess() bool {
	for i := range ds.node.cfg.Stack.Interfaces {
		d := ds.node.cfg.Devices[ds.node.cfg.Stack.Interfaces[i].Name]
		if d == nil || d.FD() >= 0 {
			return false
		}
	}
	return true
}

func (ds *Devices) close() {
	for _, d := range ds.list {
		_ = d.Close() // no caller can handle an error
	}
	if ds.node.waiter != nil {
		_ = ds.node.waiter.Close()
	}
}

// receiveBuffer returns the limit of TCP's receive buffers, which is at most what fits in the
// smallest kernel queue of a device, because the kernel drops packets beyond that.
func (ds *Devices) receiveBuffer() int {
	size := maxReceiveBuffer
	for _, d := range ds.list {
		u, ok := unimpaired(d).(realDevice)
		if !ok {
			continue
		}
		if packets := u.Info().RecvPackets; packets > 0 {
			size = min(size, packets*stack.DefaultMTU)
		}
	}
	return max(size, minReceiveBuffer)
}

// realDevice is a device whose packets leave the process.
type realDevice interface {
	Info() link.Info
	Counters(id int) link.Counters
	Neighbors(id int) []link.NeighborInfo
}

// Underneath returns the name of an interface's link: a UDP address, "tun:DEV" or "in process".
// Loop only.
func (ds *Devices) Underneath(i int) string {
	d := ds.node.cfg.Devices[ds.node.IfaceName(i)]
	if _, tun := d.(*link.TUN); d != nil && !tun {
		return "in process"
	}
	return ds.node.cfg.Links[i].String()
}

// Unimpaired returns an interface's device without its impairments. Loop only.
func (ds *Devices) Unimpaired(i int) link.Device { return unimpaired(ds.list[ds.byIface[i]]) }

// unimpaired returns a device without its impairments.
func unimpaired(d link.Device) link.Device {
	if i, ok := d.(*link.Impaired); ok {
		return i.Unwrap()
	}
	return d
}
