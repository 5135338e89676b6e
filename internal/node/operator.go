package node

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
)

// Operator returns the node as its operator sees it, but for what the rooms above it can do:
// package operator has the whole.
func (n *Node) Operator() control.Operator { return n }

// Do implements control.Operator.
func (n *Node) Do(ctx context.Context, req any) (any, error) {
	switch r := req.(type) {
	case control.Interfaces, control.Neighbors, control.Routes, control.Sockets, control.Window,
		control.Loss, control.About, control.Show, control.Impairments,
		control.RIP, control.Captures, control.TCPCounters, control.RCPSockets:
		return n.readOut(req)
	case control.SetLink:
		return n.setLink(r)
	case control.SetLoss:
		return n.setLoss(r)
	case control.AddRoute:
		return control.Nothing{}, n.addRoute(r)
	case control.DelRoute:
		return control.Nothing{}, n.delRoute(r)
	case control.Impair:
		return n.setImpairment(ctx, r)
	case control.ClearCounters:
		return control.Nothing{}, n.clearCounters(r)
	case control.SendTest:
		return n.sendTest(r)
	case control.Ping:
		return n.ping(ctx, &r)
	case control.Traceroute:
		return n.traceroute(ctx, &r)
	case control.Listen, control.Connect, control.Write, control.Read, control.Shutdown,
		control.Close, control.Congestion, control.ListenUDP, control.SendUDP:
		return n.socketRequest(ctx, req)
	case control.RCPClose:
		return control.Nothing{}, n.closeRCP(r)
	case control.Reload:
		return n.Reload(r, nil)
	case control.Set:
		return n.set(r)
	case control.Verbose:
		return control.Nothing{}, n.setVerbose(r)
	case control.Samples:
		return n.samples(ctx, &r)
	}
	return nil, fmt.Errorf("request %T: %w", req, control.ErrUnsupported)
}

// socketInfos lists the sockets with what was asked for.
func (n *Node) socketInfos(r control.Sockets, now clock.Time) []control.Socket {
	list := n.stack.SocketInfos(r.Info, now)
	for i := range list {
		if !r.Timers {
			list[i].Timer = nil
		}
	}
	return list
}

// readOut answers the requests that only look.
func (n *Node) readOut(req any) (answer any, err error) {
	callErr := n.call(func(now clock.Time) {
		switch r := req.(type) {
		case control.Interfaces:
			answer = n.interfaces()
		case control.Neighbors:
			answer = n.neighbors(now)
		case control.Routes:
			answer = n.stack.RouteInfos()
		case control.Sockets:
			answer = n.socketInfos(r, now)
		case control.Window:
			answer, err = n.windows(r)
		case control.Loss:
			answer, err = n.losses(r.Iface)
		case control.Impairments:
			answer, err = n.impairments(r.Iface)
		case control.About:
			answer = n.about()
		case control.Captures:
			answer = n.captures()
		case control.RIP:
			answer = n.stack.RIPInfo(now)
		case control.TCPCounters:
			answer = n.tcpCounted()
		case control.RCPSockets:
			answer = n.rcpSockets()
		case control.Show:
			answer, err = n.show(r.Key)
		}
	})
	if callErr != nil {
		return nil, ControlError(callErr)
	}
	return answer, err
}

func (n *Node) about() control.Node {
	return control.Node{
		Name: n.cfg.LNX.Name, OldGrammar: n.cfg.LNX.Grammar != 0, Forwarding: n.cfg.LNX.Forwarding,
	}
}

// ControlError translates an error of Call for operators: what is not in the operator's vocabulary yet.
func ControlError(err error) error {
	if err == net.ErrClosed { //nolint:errorlint // only the bare sentinel means the node itself
		return fmt.Errorf("node: %w", control.ErrClosed)
	}
	return err
}

// face finds an interface by name or by number.
func (n *Node) face(name string) (int, error) {
	list := n.asIs().Interfaces
	for i := range list {
		if list[i].Name == name && name != "" {
			return i, nil
		}
	}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(list) && list[i].Name != "" {
		return i, nil
	}
	return 0, fmt.Errorf("%q: %w: there %s", name, control.ErrNoSuchInterface, n.faceNames())
}

// faceNames lists some of the interfaces.
func (n *Node) faceNames() string {
	const most = 8
	var names []string
	for _, f := range n.asIs().Interfaces {
		if f.Name != "" {
			names = append(names, f.Name)
		}
	}
	switch {
	case len(names) == 1:
		return "is " + names[0]
	case len(names) > most:
		return "are " + strings.Join(names[:most], ", ") + " and more"
	}
	return "are " + strings.Join(names, ", ")
}

func (n *Node) setLink(r control.SetLink) (control.Interface, error) {
	i, err := n.face(r.Iface)
	if err != nil {
		return control.Interface{}, err
	}
	var answer control.Interface
	if r.Up {
		if err := n.reopen(i); err != nil {
			return answer, ControlError(err)
		}
	}
	err = n.call(func(now clock.Time) {
		before := n.stack.Up(i)
		n.stack.SetUp(now, i, r.Up)
		if d, ok := bare(n.devices[n.ifaceDevice[i]]).(*link.UDP); ok {
			d.SetUp(i, r.Up)
		}
		for _, f := range n.interfaces() {
			if f.Index == i {
				answer = f
			}
		}
		if before != r.Up {
			n.watchers.publish(control.LinkChanged{Interface: answer})
		}
	})
	return answer, ControlError(err)
}

func (n *Node) setLoss(r control.SetLoss) ([]control.LinkLoss, error) {
	if !(r.Percent >= 0 && r.Percent <= 100) {
		return nil, fmt.Errorf("loss of %v percent: %w: want 0 to 100", r.Percent, control.ErrUsage)
	}
	which, err := n.faces(r.Iface)
	if err != nil {
		return nil, err
	}
	var answer []control.LinkLoss
	callErr := n.call(func(clock.Time) {
		for _, i := range which {
			n.stack.SetLoss(i, r.Percent/100)
		}
		answer, err = n.losses(r.Iface)
	})
	return answer, ControlError(firstError(callErr, err))
}

// faces returns the interface of that name, or all for the empty name.
func (n *Node) faces(name string) ([]int, error) {
	if name != "" {
		i, err := n.face(name)
		return []int{i}, err
	}
	var all []int
	for i, f := range n.asIs().Interfaces {
		if f.Name != "" { // else it is no more
			all = append(all, i)
		}
	}
	return all, nil
}

func (n *Node) losses(name string) ([]control.LinkLoss, error) {
	which, err := n.faces(name)
	if err != nil {
		return nil, err
	}
	var list []control.LinkLoss
	for _, i := range which {
		list = append(list, control.LinkLoss{
			Iface: n.cfg.LNX.Interfaces[i].Name, Percent: n.stack.Loss(i) * 100,
			Dropped: n.stack.Lossy(i),
		})
	}
	return list, nil
}

func (n *Node) sendTest(r control.SendTest) (answer control.TestSent, err error) {
	if !control.IsHost(r.Addr) {
		return answer, fmt.Errorf("address %v: %w: want the address of a host",
			r.Addr, control.ErrUsage)
	}
	callErr := n.call(func(now clock.Time) {
		answer.Bytes, err = n.stack.SendTest(now, r.Addr, r.Proto, []byte(r.Text))
	})
	return answer, ControlError(firstError(callErr, NetError(err)))
}

// interfaces is the snapshot with what only the devices know. The loop's.
func (n *Node) interfaces() []control.Interface {
	list := n.stack.InterfaceInfos()
	for i := range list {
		n.deviceInfo(list[i].Index, &list[i])
	}
	return list
}

// neighbors lists who is on the links that are up. The loop's.
func (n *Node) neighbors(now clock.Time) []control.Neighbor {
	list := []control.Neighbor{}
	for _, nb := range n.cfg.LNX.Neighbors {
		if i, err := n.face(nb.Iface); err == nil && n.stack.Up(i) {
			if w := n.wardOf(i, nb.Addr); w != nil {
				n.lookAt(now, w)
				list = append(list, n.describe(now, w))
				continue
			}
			list = append(list, control.Neighbor{
				Iface: nb.Iface, Addr: nb.Addr, Heard: -1,
				UDP: n.neighborUDP(i, nb.Addr.As4(), nb.UDP.String()),
			})
		}
	}
	return append(list, n.kernels()...)
}
