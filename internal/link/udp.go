package link

import "net/netip"

// UDP is a Device over a UDP socket. One goroutine owns it and calls its methods.
type UDP struct {
	cfg   Config
	sock  socket
	fd    int
	port  *port // nil: not in an Exchange
	table *table

	names   *resolver              // nil: every neighbor's host is an address
	applied *map[string]netip.Addr // names and addresses that the table uses

	// These fields are for receiving.
	lent  []datagram // received datagrams that are not delivered yet
	reads int        // number of calls of arrived

	// These fields are for sending.
	route   []*neighbor // neighbor of each train of the batch; nil: the train is discarded
	queue   outQueue
	blocked uint64

	unknown uint64 // datagrams from unknown senders
}

var _ Feeder = (*UDP)(nil)

// Open binds a socket for interfaces. All of them are up.
func Open(cfg Config) (*UDP, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	bind, err := bindAddress(cfg)
	if err != nil {
		return nil, err
	}
	cfg.network = networkOf(bind.Addr())
	if err := cfg.families(); err != nil {
		return nil, err
	}
	sock, fd, err := openSocket(cfg, bind)
	if err != nil {
		return nil, bindError(cfg, err)
	}
	return newUDP(cfg, sock, fd), nil
}

func newUDP(cfg Config, sock socket, fd int) *UDP {
	d := &UDP{
		cfg: cfg, sock: sock, fd: fd, table: newTable(cfg),
		queue: outQueue{maxPackets: cfg.QueuePackets, maxBytes: cfg.QueueBytes},
		port:  cfg.Exchange.join(sock.info()),
	}
	if names := d.table.names(); len(names) > 0 {
		d.names = newResolver(cfg, names)
		d.applied = d.names.found.Load()
		d.table.learn(*d.applied)
	} else {
		d.table.learn(nil)
	}
	return d
}

// applyNames updates the table with the resolver's addresses, and requests lookups after failed
// sends.
func (d *UDP) applyNames() {
	if d.names == nil {
		return
	}
	if found := d.names.found.Load(); found != d.applied {
		d.applied = found
		d.table.learn(*found)
	}
	for _, n := range d.table.neighbors {
		if n.failed {
			n.failed = false
			d.names.refresh()
		}
	}
}

// ICMPErrors reports whether ICMP errors have arrived since the last call. Neighbors returns them.
func (d *UDP) ICMPErrors() bool {
	s, ok := d.sock.(interface{ takeICMPErrors() []icmpError })
	if !ok {
		return false
	}
	list := s.takeICMPErrors()
	for _, b := range list {
		for _, n := range d.table.from[b.to] {
			n.failed = true // the address of the neighbor's name may have changed
			n.refusals++
			n.refusal = b.err
			if b.refused {
				n.refusal = nil
			}
		}
	}
	return len(list) > 0
}

// FD implements Device.
func (d *UDP) FD() int { return d.fd }

// Feed implements Feeder. With a descriptor, ready is called only for packets from the Exchange.
func (d *UDP) Feed(ready func()) {
	if d.port != nil {
		d.port.in.feed(ready)
	}
	if f, ok := d.sock.(interface{ feed(func()) }); ok {
		f.feed(ready)
	}
}

// Close implements Device.
func (d *UDP) Close() error {
	if d.names != nil {
		d.names.close()
	}
	d.port.leave()
	return d.sock.close()
}

// SetUp sets whether the interface with the node's number id is up. linkOf prefers links that are
// up. The device still carries packets over interfaces that are down; the node drops and counts
// them.
func (d *UDP) SetUp(id int, up bool) {
	if f := d.table.at(id); f != nil {
		f.up = up
	}
}

// Counters returns the counters of the interface with the node's number id.
func (d *UDP) Counters(id int) Counters {
	f := d.table.at(id)
	if f == nil {
		return Counters{}
	}
	c := f.counters
	if len(d.table.ifaces) == 1 {
		s := d.Socket()
		c.Drops[DropUnknown], c.Drops[DropKernel] = s.Unknown, s.Overflow
	}
	return c
}

// Socket returns the counters of the device's socket.
func (d *UDP) Socket() SocketCounters {
	s := SocketCounters{Blocked: d.blocked, Unknown: d.unknown}
	d.sock.counters(&s)
	return s
}

// Info returns the state of the device.
func (d *UDP) Info() Info {
	info := d.sock.info()
	info.RecvPackets = packetsIn(info.RecvBuffer, d.table.maxMTU)
	return info
}

// Neighbors returns the neighbors on the interface with the node's number id.
func (d *UDP) Neighbors(id int) []NeighborInfo {
	d.applyNames()
	var list []NeighborInfo
	for _, n := range d.table.neighbors {
		if n.on.ID == id {
			info := NeighborInfo{
				Addr: n.Addr, Others: n.Others, Host: n.Host, Port: n.Port, UDP: n.to.addrPort(),
				Heard: n.rx, Sent: n.tx, Refused: n.refusals, Refusal: n.refusal,
				Problem: n.problem,
			}
			if d.names != nil {
				info.Lookup = d.names.failure(n.Host)
			}
			list = append(list, info)
		}
	}
	return list
}
