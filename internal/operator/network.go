package operator

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// OpenNode opens a node with the Network that the file describes.
func OpenNode(cfg node.Config, file *lnx.Config) (*node.Node, error) {
	var err error
	if cfg.Network, err = Network(file); err != nil {
		cfg.CloseDevices()
		return nil, err
	}
	n, err := node.Open(cfg)
	return n, withPosition(file, err)
}

// Network converts a file. An interface without a name is a deleted one.
func Network(c *lnx.Config) (node.Network, error) {
	if err := Check(c).Err(); err != nil {
		return node.Network{}, err
	}
	w := node.Network{
		Stack: stack.Config{
			Forwarding: c.Forwarding, Routes: staticRoutes(c), TCP: transport(c),
			Knobs: internetKnobs(c),
		},
		SharedSocket: c.SharedSocket, KeepRefused: c.RIP.KeepRefused,
	}
	if c.TCP.Profile == "004" {
		w.Stack.FirstSocket = 3 // founding document 004 §6.2: 0 to 2 are standard streams
	}
	if len(c.RIP.AdvertiseTo) > 0 { // the routes of a silent neighbor expire
		w.Patience = c.RIP.Timeout
	}
	for i := range c.Interfaces {
		f := &c.Interfaces[i]
		both, err := impairmentsOf(c, f.Name)
		if err != nil {
			return w, fmt.Errorf("interface %s: %w", f.Name, err)
		}
		w.Stack.Interfaces = append(w.Stack.Interfaces,
			stack.Interface{Name: f.Name, Addr: f.Addr, IPv6: f.IPv6, MTU: f.MTU})
		w.Links = append(w.Links,
			node.Link{UDP: node.HostPort(f.UDP), TUN: (*node.TUN)(f.Tun), Impair: both})
	}
	for i := range c.Neighbors {
		nb := &c.Neighbors[i]
		w.Neighbors = append(w.Neighbors, node.Neighbor{
			Iface: nb.Iface, Addr: nb.Addr, UDP: node.HostPort(nb.UDP), Line: c.Line(nb),
		})
	}
	setNATs(c, &w.Stack)
	setRIP(c, &w.Stack)
	return w, nil
}

// linkName returns the name of the link that an interface uses.
func linkName(f *lnx.Interface) string {
	l := node.Link{UDP: node.HostPort(f.UDP), TUN: (*node.TUN)(f.Tun)}
	return l.String()
}

// numbered orders a file's interfaces by their numbers in a running node, whose interfaces have the
// given names. A name keeps its number while the node runs.
func numbered(c *lnx.Config, names []string) (*lnx.Config, []string) {
	names = slices.Clone(names)
	own := *c
	own.Interfaces = make([]lnx.Interface, len(names), len(names)+len(c.Interfaces))
	for _, f := range c.Interfaces {
		i := slices.Index(names, f.Name)
		if i < 0 {
			i, names = len(names), append(names, f.Name)
			own.Interfaces = append(own.Interfaces, lnx.Interface{})
		}
		own.Interfaces[i] = f
	}
	return &own, names
}

func transport(c *lnx.Config) tcp.Config {
	cfg := tcp.Config{Knobs: tcp.Knobs{
		Recovery: tcp.Recovery{
			RTOMin: c.TCP.RTOMin, RTOMax: c.TCP.RTOMax,
			// RFC 6298 §2.1's initial RTO of 1 s is for wide-area networks. An RTO minimum of 1 ms
			// implies a faster network.
			RTOInitial: max(c.TCP.RTOMin, min(100*c.TCP.RTOMin, c.TCP.RTOMax, time.Second)),
		},
		OptionsOff: c.TCP.OptionsOff, NoResets: c.TCP.NoResets,
	}}
	if c.TCP.Profile == "004" {
		// Founding document 004 §7 requires these values. A SYN or FIN is sent three times, 3 s
		// apart, and there is no idle limit.
		cfg.Recovery.RTOInitial = 30 * time.Millisecond
		cfg.Retries.Syn, cfg.Retries.SynTimeout = 2, 3*time.Second
		cfg.Retries.Fin, cfg.Retries.FinTimeout = 2, 3*time.Second
		cfg.Retries.Data = 20
		cfg.MSL = 2 * time.Minute
		cfg.Buffers.Recv, cfg.Buffers.RecvMax = 65535, 65535
		cfg.Buffers.Send, cfg.Buffers.SendMax = 65535, 65535
	}
	return cfg
}

// internetKnobs returns the settings of ICMP and IP in a file.
func internetKnobs(c *lnx.Config) (k stack.Knobs) {
	k.ICMP = stack.ICMPKnobs{
		Errors:   icmp.Limit{Rate: c.ICMP.Rate, Burst: c.ICMP.Burst},
		NoErrors: c.ICMP.NoErrors, NoEcho: c.ICMP.NoEcho, NoTimestamp: c.ICMP.NoTimestamp,
		EchoBroadcast: c.ICMP.EchoBroadcast,
	}
	k.IP.DirectedBroadcast = c.IP.DirectedBroadcast
	k.IP.Reassembly.Timeout = c.IP.ReassemblyTimeout
	k.IP.Reassembly.MaxBytes = c.IP.ReassemblyBytes
	k.IP.ReversePath, _ = stack.ParseReversePath(c.IP.ReversePath) // lnx knows the same modes
	return k
}

// ripOverhead is the size of a course RIP message without its entries: IP header, command and
// count.
const ripOverhead = 24

// setRIP configures RIP if the file enables it.
func setRIP(c *lnx.Config, cfg *stack.Config) {
	dialect4, dialect6 := dialects(c)
	for _, a := range c.RIP.Originate {
		cfg.Originate = append(cfg.Originate, rip.External{
			Prefix: a.Prefix, Iface: -1, Tag: a.Tag, Metric: a.Metric,
		})
	}
	if a := c.RIP.Static; a != nil {
		cfg.Redistribute = &rip.External{Tag: a.Tag, Metric: a.Metric}
	}
	all := rip.Config{
		Timers: rip.Timers{
			Periodic: c.RIP.Periodic, PeriodicOffset: c.RIP.Offset, Timeout: c.RIP.Timeout,
			Garbage: c.RIP.Garbage, TriggerMin: c.RIP.TriggerMin,
			TriggerMax: c.RIP.TriggerMax, HoldDown: c.RIP.HoldDown,
			AskAfter: c.RIP.AskAfter,
		},
		EntrySize: c.RIP.EntrySize, MaxEntries: courseEntries(c),
	}
	if dialect4 != lnx.RoutingNone {
		v4 := all
		v4.Neighbors = ripNeighbors(c)
		for i := range c.Interfaces {
			v4.Interfaces = append(v4.Interfaces, ripInterface(&c.Interfaces[i]))
		}
		if dialect4 == lnx.RoutingRIP2 {
			v4.Dialect = rip.RIPv2
		}
		cfg.RIP = &v4
	}
	if dialect6 != lnx.RoutingNone {
		v6 := all
		v6.Dialect = rip.RIPng
		for i := range c.Interfaces {
			f := ripInterface(&c.Interfaces[i])
			f.Keys = nil // RIPng has no authentication (RFC 2080 §3)
			v6.Interfaces = append(v6.Interfaces, f)
		}
		cfg.RIPng = &v6
	}
}

// dialects returns the node's dialects for IPv4 and for IPv6. RIPv2 and RIPng need an interface
// with an address of their family.
func dialects(c *lnx.Config) (v4, v6 lnx.Routing) {
	v4, v6 = c.Routing.Dialect(netip.IPv4Unspecified()), c.Routing.Dialect(netip.IPv6Unspecified())
	has := func(six bool) bool {
		return slices.ContainsFunc(c.Interfaces, func(f lnx.Interface) bool {
			return six && len(f.IPv6) > 0 || !six && f.Addr.IsValid()
		})
	}
	if v4 == lnx.RoutingRIP2 && !has(false) {
		v4 = lnx.RoutingNone
	}
	if !has(true) {
		v6 = lnx.RoutingNone
	}
	return v4, v6
}

// courseEntries returns how many entries a message of the course's dialect may have to fit the
// smallest MTU. Zero means the protocol's maximum.
func courseEntries(c *lnx.Config) (most int) {
	for i := range c.Interfaces {
		if mtu := c.Interfaces[i].MTU; mtu > 0 {
			fit := max(1, (mtu-ripOverhead)/rip.EntrySize)
			most = min(fit, cmp.Or(most, rip.MaxEntries))
		}
	}
	return most
}

// ripNeighbors returns the neighbors of the file's advertise lines.
func ripNeighbors(c *lnx.Config) (list []rip.Neighbor) {
	for _, to := range c.RIP.AdvertiseTo {
		for _, nb := range c.Neighbors {
			i := slices.IndexFunc(c.Interfaces, func(f lnx.Interface) bool {
				return f.Name == nb.Iface
			})
			if nb.Addr == to && i >= 0 {
				list = append(list, rip.Neighbor{Addr: to, Iface: i})
			}
		}
	}
	return list
}

// ripInterface converts an interface's RIP settings, which lnx has validated.
func ripInterface(f *lnx.Interface) rip.Interface {
	if f.Name == "" { // the interface was deleted
		return rip.Interface{Passive: true, Send: rip.SendNone, Receive: rip.ReceiveNone}
	}
	r := rip.Interface{Addr: f.Addr, MTU: f.MTU, Passive: f.RIP.Passive, Cost: f.RIP.Cost}
	r.Send, _ = rip.ParseSendMode(f.RIP.Send)
	r.Receive, _ = rip.ParseReceiveMode(f.RIP.Receive)
	for _, k := range f.RIP.Keys {
		algorithm, _ := rip.ParseAlgorithm(k.Algorithm)
		r.Keys = append(r.Keys, rip.Key{ID: k.ID, Algorithm: algorithm, Secret: []byte(k.Secret)})
	}
	return r
}
