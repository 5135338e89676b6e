package main

import "encoding/binary"

var packets = []mutant{
	editTo("do not verify the header checksum", "ip header", func(packet) bool { return true },
		func(*state, packet) {}),
	dropTo("drop packets with IP options", "ip header", func(_ *state, p packet) bool {
		return p.header() > 20
	}),
	editTo("assume a header of 20 bytes", "ip header", func(p packet) bool {
		return p.header() > 20
	}, func(_ *state, p packet) { p[0] = 4<<4 | 5 }),
	editFrom("set the total length without the header", "ip header", packet.tcp,
		func(_ *state, p packet) { binary.BigEndian.PutUint16(p[2:], uint16(len(p)-20)) }),
	editFrom("write lengths in the machine's byte order", "ip header", packet.tcp,
		func(_ *state, p packet) { p[2], p[3] = p[3], p[2] }),
	dropTo("drop packets with a trailer", "ip header", func(_ *state, p packet) bool {
		return int(binary.BigEndian.Uint16(p[2:])) < len(p)
	}),
	dropTo("do not deliver packets with a TTL of 1", "ip delivery", func(_ *state, p packet) bool {
		return p.tcp() && p[8] == 1
	}),
	editFrom("send with a TTL of 4", "ip header", func(p packet) bool { return p.tcp() },
		func(_ *state, p packet) { p[8] = 4 }),
	editFrom("do not decrement the TTL", "ip forwarding", packet.forwarded,
		func(_ *state, p packet) { p[8]++ }),
	editFrom("decrement the TTL twice", "ip forwarding", packet.forwarded,
		func(_ *state, p packet) { p[8]-- }),
	{
		name: "do not update the header checksum", area: "ip forwarding",
		from: func(_ *state, p packet) packet {
			if p.forwarded() {
				p[10]--
			}
			return p
		},
	},
	editTo("forward packets with a TTL of 1", "ip forwarding", func(p packet) bool {
		return p.forwarded() && p[8] == 1
	}, func(_ *state, p packet) { p[8] = 2 }),
	dropTo("forward known protocols only", "ip forwarding", func(_ *state, p packet) bool {
		return p.proto() == 99
	}),
	dropTo("a receive buffer of 1024 bytes", "ip forwarding", func(_ *state, p packet) bool {
		return p.forwarded() && len(p) > 1024
	}),
	dropTo("drop packets without payload", "ip forwarding", func(_ *state, p packet) bool {
		return p.forwarded() && len(p) == 20
	}),
	editFrom("change the identification of forwarded packets", "ip forwarding", packet.forwarded,
		func(_ *state, p packet) { p[4], p[5] = 0, 0 }),
	editFrom("change the source of forwarded packets", "ip forwarding", packet.forwarded,
		func(_ *state, p packet) { p[15] = 1 }),
	editFrom("test packets have a zero byte at the end", "ip delivery", func(p packet) bool {
		return p.proto() == 0
	}, func(_ *state, p packet) { p[len(p)-1] = 0 }),
}

var routers = []mutant{
	dropFrom("no request at the start", "rip request", func(_ *state, p packet) bool {
		return p.rip(1)
	}),
	dropTo("ignore requests", "rip request", func(_ *state, p packet) bool { return p.rip(1) }),
	{name: "entries of 8 bytes", area: "rip", from: func(_ *state, p packet) packet {
		if !p.rip(2) {
			return p
		}
		short := append(packet(nil), p[:24]...)
		for b := p.body()[4:]; len(b) >= 12; b = b[12:] {
			short = append(short, b[:8]...)
		}
		binary.BigEndian.PutUint16(short[2:], uint16(len(short)))
		return short.sealed()
	}},
	editFrom("announce one entry too many", "rip", func(p packet) bool {
		return p.rip(2)
	}, func(_ *state, p packet) { p.body()[3]++ }),
	editFrom("costs in the machine's byte order", "rip", func(p packet) bool { return p.rip(2) },
		func(_ *state, p packet) {
			p.costs(func(cost uint32) uint32 { return cost << 24 })
		}),
	editFrom("no split horizon", "rip split horizon", func(p packet) bool { return p.rip(2) },
		func(_ *state, p packet) {
			p.costs(func(cost uint32) uint32 {
				if cost == 16 {
					return 4
				}
				return cost
			})
		}),
	editFrom("do not add the cost of the link", "rip update", func(p packet) bool {
		return p.rip(2)
	}, func(_ *state, p packet) {
		p.costs(func(cost uint32) uint32 {
			if cost > 1 && cost < 16 {
				return cost - 1
			}
			return cost
		})
	}),
	editFrom("add the cost of the link twice", "rip update", func(p packet) bool {
		return p.rip(2)
	}, func(_ *state, p packet) {
		p.costs(func(cost uint32) uint32 {
			if cost > 1 && cost < 15 {
				return cost + 1
			}
			return cost
		})
	}),
	{
		name: "no poison: leave out unreachable networks", area: "rip split horizon",
		from: func(_ *state, p packet) packet {
			return p.onlyEntries(func(cost uint32) bool { return cost < 16 })
		},
	},
	editTo("ignore the masks of routes", "ip routing", func(p packet) bool {
		return p.rip(2) && len(p) >= 36
	}, func(_ *state, p packet) {
		for b := p.body()[4:]; len(b) >= 12; b = b[12:] {
			copy(b[8:], []byte{255, 255, 255, 255})
		}
	}),
	dropTo("ignore withdrawals", "rip infinity", func(_ *state, p packet) bool {
		return p.rip(2) && len(p) >= 36 && p[27] == 16
	}),
	editTo("infinity is 17", "rip infinity", func(p packet) bool {
		return p.rip(2) && len(p) >= 36 && p[27] == 15
	}, func(_ *state, p packet) { p[27] = 14 }),
	editTo("read the first entry only", "rip update", func(p packet) bool {
		return p.rip(2) && p.body()[3] > 1 && len(p) > 36
	}, func(_ *state, p packet) {
		for b := p.body()[16:]; len(b) >= 12; b = b[12:] {
			copy(b, p.body()[4:16])
		}
	}),
	dropFrom("no updates", "rip", func(_ *state, p packet) bool { return p.rip(2) }),
}
