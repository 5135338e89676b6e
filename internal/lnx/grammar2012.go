package lnx

import (
	"net/netip"
	"strconv"
)

const usageLink2012 = "LOCALHOST:PORT LOCAL-VIP REMOTEHOST:PORT REMOTE-VIP"

// read2012 reads the grammar to 2012: a link a line, each with a socket of its
// own. Its RIP entries have no mask.
//
//	localhost:17000 10.10.168.73 localhost:17001 10.116.89.157
func (p *parser) read2012(lines []line) {
	p.cfg.RIP.EntrySize = hostEntrySize
	for _, l := range lines {
		if !p.words(l, 4, 4, usageLink2012) {
			p.excuse(l)
			continue
		}
		local := p.end2013(l.words[0], p.hostPort)
		p.addLink(local, p.end2013(l.words[2], p.destination), l.words[1], l.words[3])
	}
	p.setOld()
}

// end is the UDP address of one end of a link of the old grammars.
type end struct {
	udp HostPort
	at  Pos
	ok  bool
}

// addLink adds a link of an old grammar: an interface with the local virtual
// address and a neighbour with the remote one. They have no subnet in common;
// each is announced as a network of one address.
func (p *parser) addLink(local, remote end, localVIP, remoteVIP word) {
	localAddr, okLocal := p.addr(localVIP)
	remoteAddr, okRemote := p.addr(remoteVIP)
	if !okLocal || !okRemote || !remote.ok {
		p.excused[remoteVIP.text] = true
		p.subnetsUnknown = true
		return
	}
	name := interfaceNamePrefix + strconv.Itoa(len(p.cfg.Interfaces))
	p.addInterface(Interface{
		Name: name, Addr: netip.PrefixFrom(localAddr, pointToPoint), UDP: local.udp,
		Pos: localVIP.pos, addrAt: localVIP.pos, udpAt: local.at,
	})
	p.cfg.Neighbors = append(p.cfg.Neighbors, Neighbor{
		Addr: remoteAddr, UDP: remote.udp, Iface: name,
		Pos: remoteVIP.pos, udpAt: remote.at, ifaceAt: localVIP.pos,
	})
}

// setOld makes the node what all nodes of the old grammars were: a router that
// speaks RIP on every link.
func (p *parser) setOld() {
	p.cfg.Routing = RoutingRIP
	for _, n := range p.cfg.Neighbors {
		p.cfg.RIP.AdvertiseTo = append(p.cfg.RIP.AdvertiseTo, n.Addr)
		p.advertiseAt = append(p.advertiseAt, n.Pos)
	}
}
