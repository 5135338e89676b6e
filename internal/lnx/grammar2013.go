package lnx

const (
	usageNode2013 = "the node's own HOST:PORT"
	usageLink2013 = "HOST:PORT LOCAL-VIP REMOTE-VIP"
)

// read2013 reads the grammar of 2013 to 2017: that of 2018 with a colon before
// the port. Its RIP entries have no mask.
//
//	localhost:5001
//	localhost:5000 192.168.0.2 192.168.0.1
func (p *parser) read2013(lines []line) {
	p.cfg.SharedSocket = true
	p.cfg.RIP.EntrySize = hostEntrySize
	var node end
	for i, l := range lines {
		switch {
		case i == 0:
			if p.words(l, 1, 1, usageNode2013) {
				node = p.end2013(l.words[0], p.hostPort)
			}
		case p.words(l, 3, 3, usageLink2013):
			p.addLink(node, p.end2013(l.words[0], p.destination), l.words[1], l.words[2])
		default:
			p.excuse(l)
		}
	}
	p.setOld()
}

// end2013 reads a word of HOST:PORT.
func (p *parser) end2013(w word, read func(word) (HostPort, bool)) end {
	e := end{at: w.pos}
	e.udp, e.ok = read(w)
	return e
}
