package lnx

import (
	"net/netip"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/rip"
)

// oldGrammar is one of the grammars before 2022. Their lines have no keywords. Each line describes
// a point-to-point link, except a first line with the node's socket. The node is a router and runs
// RIP on all links.
type oldGrammar struct {
	node      string // form of the first line; empty: each link has its own socket
	link      string // form of a link line, which ends in LOCAL-VIP REMOTE-VIP
	words     int    // words of a link line
	port      bool   // the port is a separate word
	entrySize int
}

// oldGrammars are the grammars that detect recognizes. Each of these files describes the middle
// node of three:
//
//	localhost:17000 10.10.168.73 localhost:17001 10.116.89.157
//
//	localhost:5001
//	localhost:5000 192.168.0.2 192.168.0.1
//	localhost:5002 192.168.0.3 192.168.0.4
//
//	localhost 5001
//	localhost 5000 192.168.0.2 192.168.0.1
//	localhost 5002 192.168.0.3 192.168.0.4
var oldGrammars = map[Grammar]oldGrammar{
	Grammar2012: {
		link:  "LOCALHOST:PORT LOCAL-VIP REMOTEHOST:PORT REMOTE-VIP",
		words: 4, entrySize: rip.OldEntrySize,
	},
	Grammar2013: {
		node: "the node's own HOST:PORT", link: "HOST:PORT LOCAL-VIP REMOTE-VIP",
		words: 3, entrySize: rip.OldEntrySize,
	},
	Grammar2018: {
		node: "the node's own HOST PORT", link: "HOST PORT LOCAL-VIP REMOTE-VIP",
		words: 4, port: true, entrySize: rip.EntrySize,
	},
}

func (p *parser) readOld(g oldGrammar, lines []line) {
	r := &p.report
	p.cfg.Routing, p.cfg.SharedSocket = RoutingRIP, g.node != ""
	p.cfg.RIP.EntrySize = g.entrySize
	var node end
	for i, l := range lines {
		switch {
		case i == 0 && g.node != "":
			if r.words(l, g.words-2, g.words-2, g.node) {
				node = g.end(r, l.words, r.host)
			}
		case !r.words(l, g.words, g.words, g.link):
			p.suppressMissing(l)
		case g.node == "":
			local, remote := g.end(r, l.words, r.host), g.end(r, l.words[2:], r.remoteHost)
			p.addLink(local, remote, l.words[1], l.words[3])
		default:
			p.addLink(node, g.end(r, l.words, r.remoteHost), l.words[g.words-2], l.words[g.words-1])
		}
	}
	for _, n := range p.cfg.Neighbors {
		p.cfg.RIP.AdvertiseTo = append(p.cfg.RIP.AdvertiseTo, n.Addr)
		p.advertiseAt = append(p.advertiseAt, n.Pos)
	}
}

// end is the UDP address of one end of a link.
type end struct {
	udp HostPort
	at  Pos
	ok  bool
}

// end reads the UDP address that the words begin with.
func (g oldGrammar) end(r *report, words []Word, host func(Word) (string, bool)) end {
	e := end{at: words[0].Pos}
	if !g.port {
		e.udp, e.ok = r.endpoint(words[0], wantHostPort, host)
		return e
	}
	var okPort bool
	e.udp.Host, e.ok = host(words[0])
	e.udp.Port, okPort = r.port(words[1])
	e.ok = e.ok && okPort
	return e
}

// addLink adds a link of an old grammar: an interface with the local virtual address, and a
// neighbor with the remote one. The two addresses share no subnet. Each is announced as a network
// of one address.
func (p *parser) addLink(local, remote end, localVIP, remoteVIP Word) {
	localAddr, okLocal := p.report.addr4(localVIP)
	remoteAddr, okRemote := p.report.addr4(remoteVIP)
	if !okLocal || !okRemote || !remote.ok {
		p.suppressed[remoteVIP.Text] = true
		p.subnetsUnknown = true
		return
	}
	name := interfaceNamePrefix + strconv.Itoa(len(p.cfg.Interfaces))
	p.addInterface(Interface{
		Name: name, Addr: netip.PrefixFrom(localAddr, pointToPoint), UDP: local.udp,
		Pos: localVIP.Pos, addrAt: localVIP.Pos, udpAt: local.at,
	})
	p.cfg.Neighbors = append(p.cfg.Neighbors, Neighbor{
		Addr: remoteAddr, UDP: remote.udp, Iface: name,
		Pos: remoteVIP.Pos, udpAt: remote.at, ifaceAt: localVIP.Pos,
	})
}
