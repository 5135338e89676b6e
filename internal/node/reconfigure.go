package node

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/observe"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Reconfiguration is a prepared change of the interfaces. Prepare runs outside the loop and finds
// the errors. The loop then makes the whole change between two packets.
type Reconfiguration struct {
	*Network                        // network with every interface number, including deleted ones
	fresh    map[string]link.Device // sockets and devices opened for the change, by name
	place    map[int]string         // previous link of each interface
}

// Network returns the node's current network. It must not be changed.
func (n *Node) Network() *Network { return n.shown.Load() }

// SetNetwork replaces the node's network. Only the loop may call it, or Open.
func (n *Node) SetNetwork(w *Network) {
	n.cfg.Network = *w
	n.shown.Store(w)
}

// Ifaces returns all current and deleted interfaces, by number. The caller must not change them.
func (n *Node) Ifaces() []stack.Interface { return n.Network().Stack.Interfaces }

// IfaceName returns the name of an interface. For packets from the node to itself it returns lo.
func (n *Node) IfaceName(i int) string {
	if list := n.Ifaces(); i >= 0 && i < len(list) {
		return list[i].Name
	}
	return observe.SelfIface
}

// Iface finds an interface by name or number.
func (n *Node) Iface(name string) (int, error) {
	list := n.Ifaces()
	var names []string
	for i := range list {
		if list[i].Name == name && name != "" {
			return i, nil
		}
		if list[i].Name != "" {
			names = append(names, list[i].Name)
		}
	}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(list) && list[i].Name != "" {
		return i, nil
	}
	return 0, fmt.Errorf("%q: %w: this node has %s", name, control.ErrNoSuchInterface,
		listed(names))
}

// listed formats the first names for an error.
func listed(names []string) string {
	const most = 8
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and more"
	}
	return strings.Join(names, ", ")
}

// Prepare prepares the change to a network and opens new devices. The interfaces in withoutSocket
// currently have no socket. Prepare must not run concurrently.
func (ds *Devices) Prepare(to *Network, withoutSocket map[string]bool) (*Reconfiguration, error) {
	w := &Reconfiguration{to, map[string]link.Device{}, map[int]string{}}
	standing := map[string]bool{}
	was := ds.node.Network()
	for i, f := range was.Stack.Interfaces {
		if f.Name != "" && !withoutSocket[f.Name] {
			w.place[i] = was.Links[i].String()
			standing[w.place[i]] = true
		}
	}
	for _, faces := range w.groups() {
		on := w.Links[faces[0]].String()
		if standing[on] {
			continue
		}
		d, err := ds.openOne(w.Network, faces)
		if err != nil {
			w.Abandon()
			return nil, err
		}
		w.fresh[on] = d
	}
	return w, nil
}

// groups returns the numbers of interfaces, grouped by shared socket.
func (w *Network) groups() (list [][]int) {
	at := map[string]int{}
	for i := range w.Links {
		if w.Stack.Interfaces[i].Name == "" {
			continue
		}
		on := w.Links[i].String()
		if k, ok := at[on]; ok && w.SharedSocket {
			list[k] = append(list[k], i)
			continue
		}
		at[on] = len(list)
		list = append(list, []int{i})
	}
	return list
}

// Opened reports whether new devices were opened.
func (w *Reconfiguration) Opened() bool { return len(w.fresh) > 0 }

// Abandon closes the new devices.
func (w *Reconfiguration) Abandon() {
	for _, d := range w.fresh {
		_ = d.Close() // the device was never used
	}
}

// Reconfigure makes the change. The caller must have set the node's network. Loop only.
func (ds *Devices) Reconfigure(now clock.Time, w *Reconfiguration) error {
	err := ds.node.stack.Reconfigure(now, ds.node.stackInterfaces())
	if err != nil {
		return fmt.Errorf("node: %w", err)
	}
	devices, old := w.fresh, map[link.Device]int{}
	for i, token := range ds.byIface {
		if on, was := w.place[i]; was {
			devices[on] = unimpaired(ds.list[token])
			old[devices[on]] = token
		}
	}
	taken := map[int]bool{}
	if ds.guest.device != nil {
		taken[ds.guest.token] = true
	}
	ds.attached = make([]bool, len(w.Links))
	for _, faces := range w.groups() {
		d := devices[w.Links[faces[0]].String()]
		token := ds.tokenFor(faces, taken)
		taken[token] = true
		if err := ds.attach(token, d, faces, old); err != nil {
			return err
		}
		delete(old, d)
	}
	for d := range old {
		_ = d.Close() // the error cannot be handled
	}
	for token := range ds.list {
		if !taken[token] {
			ds.list[token], ds.blocked[token] = nullDevice{}, false
			if token < len(ds.impaired) {
				ds.impaired[token] = nil
			}
		}
	}
	ds.room = make([]int, len(ds.byIface))
	ds.node.Neighbors.rebuild(now)
	return nil
}

// tokenFor returns the token for the device of interfaces. It reuses the token of one of them, so
// that its impairments stay, or returns a new one.
func (ds *Devices) tokenFor(faces []int, taken map[int]bool) int {
	for len(ds.byIface) <= slices.Max(faces) {
		ds.byIface = append(ds.byIface, -1)
	}
	for _, i := range faces {
		if token := ds.byIface[i]; token >= 0 && !taken[token] {
			return token
		}
	}
	ds.list = append(ds.list, nullDevice{})
	ds.sharing, ds.blocked = append(ds.sharing, 1), append(ds.blocked, false)
	return len(ds.list) - 1
}

// attach makes a device with a token serve interfaces. The map old contains the tokens of devices
// that were open.
func (ds *Devices) attach(token int, d link.Device, faces []int, old map[link.Device]int) error {
	was, there := old[d]
	moved := !there || was != token
	var lanes []link.Impairment
	for _, i := range faces {
		ds.byIface[i], ds.attached[i] = token, true
		lanes = append(lanes, link.Impairment{Iface: i, Stream: netem.Streams(1)})
	}
	ds.sharing[token] = len(faces)
	if u, ok := d.(*link.UDP); ok && there {
		if err := u.Reconfigure(ds.node.cfg.linkInterfaces(faces)); err != nil {
			return fmt.Errorf("node: %w", err)
		}
	}
	for _, i := range faces {
		if u, ok := d.(*link.UDP); ok {
			u.SetUp(i, ds.node.stack.Interfaces().Up(i))
		}
	}
	ds.list[token] = d
	if token < len(ds.impaired) && ds.impaired[token] != nil {
		m := ds.impaired[token]
		if err := m.device.MoveTo(d, lanes...); err != nil {
			return fmt.Errorf("node: %w", err)
		}
		if m.faces = faces; m.active {
			ds.list[token] = m.device
		}
		ds.node.Taps.rewatch()
	}
	if !moved {
		return nil
	}
	ds.blocked[token] = false
	return ds.watch(d, token)
}

// CloseSockets closes the UDP sockets, except those with an address in kept. It returns the
// interfaces that lose their sockets. Interfaces in gone had no socket before. Loop only.
func (ds *Devices) CloseSockets(kept, gone map[string]bool) (names []string) {
	for i, token := range ds.byIface {
		name := ds.node.IfaceName(i)
		if name == "" || gone[name] || kept[ds.node.cfg.Links[i].String()] {
			continue
		}
		d := unimpaired(ds.list[token])
		if _, udp := d.(*link.UDP); !udp && d != (nullDevice{}) {
			continue
		}
		names = append(names, name)
		if d == (nullDevice{}) {
			continue // another interface has the same socket
		}
		_ = d.Close() // no caller can handle an error
		ds.blocked[token] = false
		if ds.list[token] == d {
			ds.list[token] = nullDevice{}
		}
		if m := ds.impairedDeviceOf(i); m != nil {
			var lanes []link.Impairment
			for _, face := range m.faces {
				lanes = append(lanes, link.Impairment{Iface: face})
			}
			_ = m.device.MoveTo(nullDevice{}, lanes...) // never fails: all lanes move
		}
	}
	return names
}

// nullDevice is the device of interfaces without a socket: it discards all packets.
type nullDevice struct{}

func (nullDevice) ReadBatch([]buffer.Frame) (int, error) { return 0, link.ErrWouldBlock }

func (nullDevice) WriteBatch(trains []buffer.Train) (int, error) { return len(trains), nil }

func (nullDevice) Room() int { return 1 }

func (nullDevice) Pending() int { return 0 }

func (nullDevice) FD() int { return -1 }

func (nullDevice) Close() error { return nil }
