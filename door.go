package tidepool

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/door"
)

// Door is a way between the machine's network and the virtual one, which Publish and Expose
// open. Connections through it are ended as by their own ends: each direction by itself, a reset
// by a reset, and who reads slowly holds up who writes.
type Door struct {
	door *door.Door
	addr net.Addr
}

// DoorInfo is what went through a door.
type DoorInfo struct {
	// Open are the connections, or flows of datagrams, under way, Opened all that have been,
	// Failed those that could not be led on or did not end in order.
	Open           int
	Opened, Failed uint64
	// In are the bytes into the virtual network, Out those out of it.
	In, Out uint64
	// Problem is the last failure.
	Problem string
}

// Publish has an address of the machine lead to one of the virtual network, so that every
// program of the machine can reach it: Publish("tcp", "127.0.0.1:8080", "10.1.0.2:80"). Without a
// host it is the machine's loopback; port 0 is one that is free. The network is "tcp" or "udp",
// where who sends has a port of the node's until two minutes of silence.
func (n *Node) Publish(network, address, to string) (*Door, error) {
	udp, err := datagrams("publish", network)
	if err != nil {
		return nil, err
	}
	req := control.Publish{UDP: udp}
	on, err := machineAddr(address)
	if err == nil {
		req.On, req.Port = on.Addr(), on.Port()
		req.To, err = n.resolve(context.Background(), "publish", network, transportOf(network), to)
	}
	if err != nil {
		return nil, err
	}
	return n.door(n.inner().Doors.Publish(req))
}

// Expose has a port of the node, at all its addresses, lead to a service of the machine's network:
// Expose("tcp", 80, "127.0.0.1:3000"). The network is "tcp" or "udp", see Publish.
func (n *Node) Expose(network string, port uint16, to string) (*Door, error) {
	udp, err := datagrams("expose", network)
	if err != nil {
		return nil, err
	}
	return n.door(n.inner().Doors.Expose(control.Expose{Port: port, To: to, UDP: udp}))
}

func (n *Node) door(d *door.Door, err error) (*Door, error) {
	if err != nil {
		return nil, err
	}
	return &Door{door: d, addr: d.Addr()}, nil
}

// datagrams reports whether a network is UDP's.
func datagrams(op, network string) (bool, error) {
	switch transportOf(network) {
	case "tcp":
		return false, nil
	case "udp":
		return true, nil
	}
	return false, &net.OpError{Op: op, Net: network, Err: net.UnknownNetworkError(network)}
}

// transportOf is a network's name without the version of IP.
func transportOf(network string) string { return strings.TrimSuffix(network, "4") }

// machineAddr reads [HOST]:PORT of the machine.
func machineAddr(address string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if host == "" || host == "localhost" {
		host = "127.0.0.1"
	}
	on, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
	if err != nil {
		return on, fmt.Errorf("publish %q: want [ADDR]:PORT: %w", address, syscall.EINVAL)
	}
	return on, nil
}

// Addr is where the door listens: for Publish an address of the machine, for Expose one of the
// virtual network.
func (d *Door) Addr() net.Addr { return d.addr }

// Info tells what went through the door.
func (d *Door) Info() DoorInfo {
	if d.door == nil {
		return DoorInfo{}
	}
	s := d.door.State()
	return DoorInfo{
		Open: s.Open, Opened: s.Opened, Failed: s.Failed, In: s.In, Out: s.Out, Problem: s.Problem,
	}
}

// Close closes the door. What is under way goes on until it ends, or the node does.
func (d *Door) Close() error {
	if d.door == nil {
		return net.ErrClosed
	}
	return d.door.Close(false)
}

// Cut closes the door and resets what is under way.
func (d *Door) Cut() error {
	if d.door == nil {
		return net.ErrClosed
	}
	return d.door.Close(true)
}
