package stack

import (
	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// Relay is InputPackets and then Output, for a train of packets that a router passes on and a
// driver whose links all have room: what came by interface i, all in t.Pieces, is ready to leave
// as one train, which the rest of t says. It is false, and nothing has happened, for packets
// that may need more than that: see follow. So it is while something waits for Output, or
// somebody watches packets.
func (s *Stack) Relay(i int, t *buffer.Train) bool {
	first := t.Pieces[0]
	if len(first) < ip.HeaderLen || s.tap != nil || s.Pending() ||
		len(t.Pieces) > buffer.MaxTrainPackets {
		return false
	}
	f := s.flows.of(ip.Ends(first))
	if f.until != s.routes.Generation()+1 || f.in != i || f.lossy || len(first) > f.mtu ||
		!s.interfaces[f.out].up {
		return false
	}
	bytes := 0
	for _, b := range t.Pieces {
		if !ip.IsPlain(b, f.ends) {
			return false
		}
		bytes += len(b)
	}
	for _, b := range t.Pieces {
		ip.Forward(b)
	}
	t.Size, t.Count, t.Bytes, t.Iface, t.NextHop = len(first), len(t.Pieces), bytes, f.out, f.hop
	in, out := &s.interfaces[i].rx, &s.interfaces[f.out].tx
	n := uint64(t.Count)
	in.packets, in.bytes, in.forwarded = in.packets+n, in.bytes+uint64(bytes), in.forwarded+n
	out.packets, out.bytes = out.packets+n, out.bytes+uint64(bytes)
	return true
}

// Pending reports whether Output may have something, or somebody has to be asked.
func (s *Stack) Pending() bool {
	return s.tcp.Ready() || s.out.walking || len(s.out.packets)+len(s.out.forward) > 0 ||
		s.rip != nil || len(s.probers)+len(s.ports.list) > 0
}
