package stack

import (
	"net/netip"
	"strings"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Up reports whether interface i is up.
func (s *Stack) Up(i int) bool { return s.interfaces[i].up }

// Loss returns the share (0 to 1) of packets that is dropped on the way out of
// interface i when they are forwarded.
func (s *Stack) Loss(i int) float64 { return s.interfaces[i].loss }

// Lossy returns how many packets lossyforward has dropped on the way out of interface i.
func (s *Stack) Lossy(i int) uint64 { return s.interfaces[i].tx.drops[ip.DropLossy] }

// ClearCounters sets what interface i has counted to zero.
func (s *Stack) ClearCounters(i int) {
	f := &s.interfaces[i]
	f.rx, f.tx = counters{}, counters{}
}

// Owns returns the interface that has the address.
func (s *Stack) Owns(a ip.Addr) (int, bool) {
	i, ok := s.own[a]
	return i, ok
}

// InterfaceInfos returns every interface as an operator sees it, but for what
// only its device knows.
func (s *Stack) InterfaceInfos() []control.Interface {
	list := make([]control.Interface, 0, len(s.interfaces))
	for i := range s.interfaces {
		f := &s.interfaces[i]
		if !f.Addr.IsValid() {
			continue // it is no more
		}
		list = append(list, control.Interface{
			Index: i, Name: f.Name, Addr: f.Addr, Up: f.up, MTU: f.MTU,
			LossPercent: f.loss * 100, In: f.rx.info(), Out: f.tx.info(),
		})
	}
	return list
}

func (c *counters) info() control.Counters {
	info := control.Counters{
		Packets: c.packets, Bytes: c.bytes, Delivered: c.delivered, Forwarded: c.forwarded,
		Fragments: c.fragments, Fragmented: c.fragmented, Drops: []control.Drop{},
	}
	for reason, n := range c.drops {
		if n > 0 {
			info.Drops = append(info.Drops, control.Drop{
				Reason: ip.DropReason(reason).String(), Packets: n,
			})
		}
	}
	return info
}

// RouteInfos returns the routes in use, sorted by prefix.
func (s *Stack) RouteInfos() []control.Route {
	list := []control.Route{}
	for r := range s.routes.All() {
		info := control.Route{
			Origin: control.OriginLocal, Prefix: r.Prefix, NextHop: r.NextHop, Cost: r.Cost,
			Iface: s.interfaces[r.Iface].Name,
		}
		switch r.Origin {
		case ip.Local:
		case ip.Static:
			info.Origin = control.OriginStatic
		case ip.RIP:
			info.Origin = control.OriginRIP
		}
		if r.Kind != ip.Forwarded {
			info.Iface, info.Kind = "", control.RouteKind(r.Kind.String())
		}
		list = append(list, info)
	}
	return list
}

// SocketInfos returns every socket by number, with the connections' inner state
// if info is set; behind them what listeners have in SYN-RECEIVED, without numbers.
func (s *Stack) SocketInfos(info bool, now clock.Time) []control.Socket {
	s.expireSockets(now)
	list := []control.Socket{}
	for id, k := range s.sockets.byID {
		if k != nil {
			list = append(list, k.info(id, info, now))
		}
	}
	for c := range s.tcp.HalfOpen() {
		t := c.Tuple()
		k := control.Socket{SID: -1, Local: t.Local(), Remote: t.Remote()}
		DescribeConn(&k, c, info, now)
		list = append(list, k)
	}
	return list
}

// SocketInfo returns one socket with its inner state; the zero Socket with
// that number when there is none.
func (s *Stack) SocketInfo(id int, now clock.Time) control.Socket {
	k, ok := s.Socket(id)
	if !ok {
		return control.Socket{SID: id}
	}
	return k.info(id, true, now)
}

// FindSocket returns the number of the connection with these ends, or -1.
func (s *Stack) FindSocket(local ip.Addr, localPort uint16, remote ip.Addr, remotePort uint16) int {
	l := netip.AddrPortFrom(netip.AddrFrom4(local), localPort)
	r := netip.AddrPortFrom(netip.AddrFrom4(remote), remotePort)
	for id, k := range s.sockets.byID {
		if k != nil && k.Local() == l && k.Remote() == r {
			return id
		}
	}
	return -1
}

func (k *Socket) info(id int, info bool, now clock.Time) control.Socket {
	c := control.Socket{SID: id, Local: k.Local(), Remote: k.Remote()}
	if k.Listener != nil {
		c.Remote = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
		c.State = StateName(tcp.StateListen)
		c.RecvQ, c.SendQ = k.Listener.Queued(), k.Listener.Backlog()
		return c
	}
	if k.UDP != nil {
		return udpInfo(c, k.UDP)
	}
	if k.Conn == nil {
		c.State = StateName(tcp.StateTimeWait)
		c.Timer = &control.Timer{Name: "timewait", In: k.TimeWait.Sub(now)}
		return c
	}
	DescribeConn(&c, k.Conn, info, now)
	return c
}

// DescribeConn fills in what a connection tells of itself, with its inner state if
// info is set.
func DescribeConn(s *control.Socket, c *tcp.Conn, info bool, now clock.Time) {
	s.State = StateName(c.State())
	s.RecvQ, s.SendQ = c.Rx().Len(), c.Tx().Len()
	if p, ok := c.Pending(); ok {
		s.Timer = &control.Timer{Name: p.Name, In: max(0, p.At.Sub(now)), Retries: p.Retries}
	}
	if info {
		s.Info = connInfo(c.Info(), now)
	}
}

// StateName is the RFC's name as sockets tables write it.
func StateName(s tcp.State) string { return strings.ReplaceAll(s.String(), "-", "_") }
