package lnx

const (
	usageNode2018 = "the node's own HOST PORT"
	usageLink2018 = "HOST PORT LOCAL-VIP REMOTE-VIP"
)

// read2018 reads the grammar of 2018 to 2022: the node's one socket, then a
// link a line. The middle of a line of three:
//
//	localhost 5001
//	localhost 5000 192.168.0.2 192.168.0.1
//	localhost 5002 192.168.0.3 192.168.0.4
func (p *parser) read2018(lines []line) {
	p.cfg.SharedSocket = true
	p.cfg.RIP.EntrySize = maskEntrySize
	var node end
	for i, l := range lines {
		switch {
		case i == 0:
			if p.words(l, 2, 2, usageNode2018) {
				node = p.end2018(l, p.host)
			}
		case p.words(l, 4, 4, usageLink2018):
			p.addLink(node, p.end2018(l, p.remoteHost), l.words[2], l.words[3])
		default:
			p.excuse(l)
		}
	}
	p.setOld()
}

// end2018 reads the HOST PORT that opens a line.
func (p *parser) end2018(l line, host func(word) (string, bool)) end {
	e := end{at: l.words[0].pos}
	var okPort bool
	e.udp.Host, e.ok = host(l.words[0])
	e.udp.Port, okPort = p.port(l.words[1])
	e.ok = e.ok && okPort
	return e
}
