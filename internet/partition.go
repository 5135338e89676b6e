package internet

import "net/netip"

// Partition divides hosts into groups that cannot reach each other. Links between hosts of
// different groups are cut. Packets from one group to another are also lost if they cross routers
// that are in no group. Hosts that are in no group reach all others. Heal ends the partition;
// another call of Partition replaces it.
func (w *World) Partition(groups ...[]string) {
	w.t.Helper()
	group, addrs := map[*Host]int{}, map[netip.Addr]int{}
	for i, names := range groups {
		for _, name := range names {
			h := w.Host(name)
			if group[h] != 0 {
				w.t.Errorf("internet: Partition: host %s is named twice", name)
			}
			group[h] = i + 1
			for _, a := range h.addrs {
				addrs[a] = i + 1
			}
		}
	}
	if len(groups) < 2 {
		w.t.Errorf("internet: Partition: %d groups: must be two or more", len(groups))
	}
	w.happens("a partition of %v", groups)
	w.groups.Store(&addrs)
	for _, l := range w.links {
		a, b := group[l.ends[0].host], group[l.ends[1].host]
		l.partition(a != 0 && b != 0 && a != b)
	}
}

// Heal ends the partition. Links that Link.Cut has cut remain cut.
func (w *World) Heal() {
	w.happens("the partition heals")
	w.groups.Store(nil)
	for _, l := range w.links {
		l.partition(false)
	}
}

// passes reports whether a packet stays within its group. It checks only the first packet of a
// train, because all packets of a train have the same addresses.
func (w *World) passes(train []byte) bool {
	groups := w.groups.Load()
	if groups == nil {
		return true
	}
	var from, to netip.Addr
	switch {
	case len(train) >= 20 && train[0]>>4 == 4:
		from, to = netip.AddrFrom4([4]byte(train[12:])), netip.AddrFrom4([4]byte(train[16:]))
	case len(train) >= 40 && train[0]>>4 == 6:
		from, to = netip.AddrFrom16([16]byte(train[8:])), netip.AddrFrom16([16]byte(train[24:]))
	}
	a, b := (*groups)[from], (*groups)[to]
	return a == 0 || b == 0 || a == b
}
