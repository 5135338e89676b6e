package link

import (
	"errors"
	"net/netip"
	"slices"
)

// Reconfigure changes the device's interfaces, neighbors, addresses and MTUs. Interfaces and
// neighbors that stay keep their counters. Queued packets to removed neighbors are still sent.
// Reconfigure does not wait for lookups of new names. If it returns an error, nothing has changed.
func (d *UDP) Reconfigure(interfaces []Interface) error {
	cfg := d.cfg
	cfg.Interfaces = interfaces
	cfg = cfg.withDefaults()
	if err := errors.Join(cfg.validate(), cfg.families()); err != nil {
		return err
	}
	d.cfg = cfg
	next := newTable(cfg)
	next.inherit(d.table)
	d.table = next
	names := next.names()
	if d.names == nil && len(names) == 0 {
		d.table.learn(nil)
		return nil
	}
	if d.names == nil || !slices.Equal(names, d.names.names) {
		found := map[string]netip.Addr{}
		if d.names != nil {
			for name, addr := range *d.names.found.Load() {
				if slices.Contains(names, name) {
					found[name] = addr
				}
			}
			go d.names.close() // closed in a goroutine, because a lookup may take long to end
		}
		d.names = startResolver(cfg, names, &found, make(chan struct{}))
		d.applied = &found
	}
	d.table.learn(*d.applied)
	return nil
}

// inherit copies the state of interfaces and neighbors that stay.
func (t *table) inherit(old *table) {
	for _, f := range t.ifaces {
		was := old.at(f.ID)
		if was == nil || was.Name != f.Name {
			continue
		}
		f.up, f.counters = was.up, was.counters
		for addr, n := range f.hops {
			o := was.hops[addr]
			if o != nil && addr == n.Addr && o.Host == n.Host && o.Port == n.Port {
				n.rx, n.tx, n.refusals, n.refusal = o.rx, o.tx, o.refusals, o.refusal
				n.problem, n.down = o.problem, o.down
			}
		}
	}
}
