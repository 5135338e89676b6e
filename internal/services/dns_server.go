package services

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/net/netutil"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// DNS is a node's DNS server and resolver.
type DNS struct {
	node *node.Node
	name string               // the node's name
	zone atomic.Pointer[zone] // zone from which the server answers

	mu     sync.Mutex
	state  control.DNSState
	random func() uint64  // source of the resolver's IDs; nil: no query was sent
	tcp    *node.Listener // listener of the server; nil: the server is off
	udp    *node.PacketConn
}

const (
	maxServers  = 3
	maxHostName = 63  // maximum length of a label (RFC 1035 §2.3.4)
	maxZoneName = 180 // leaves room for a host and for hostmaster
	// dnsIdle is how long a connection without a query stays open (RFC 7766 §6.2.3).
	dnsIdle = 10 * time.Second
)

// Configure replaces the node's DNSConfig, or leaves it unchanged if there is an error.
func (d *DNS) Configure(cfg control.DNSConfig) error {
	cfg.Zone = cmp.Or(strings.TrimSuffix(cfg.Zone, "."), control.DefaultZone)
	if err := checkDNS(&cfg); err != nil {
		return fmt.Errorf("dns: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(cfg.Names) == 0 {
		d.stop()
	} else {
		z, err := newZone(&cfg, d.ownName())
		if err != nil {
			return fmt.Errorf("dns: %w", err)
		}
		if err := d.start(z); err != nil {
			return err
		}
	}
	d.state.DNSConfig = cfg
	return nil
}

// ownName returns the node's name and addresses, for the zone's NS record.
func (d *DNS) ownName() control.HostName {
	own := control.HostName{Name: d.name}
	if !isHostName(d.name) {
		own.Name = "ns"
	}
	for _, f := range d.node.Ifaces() {
		for _, p := range f.Addrs() {
			if !p.Addr().IsLinkLocalUnicast() {
				own.Addrs = append(own.Addrs, p.Addr())
			}
		}
	}
	return own
}

// checkDNS returns an error if a configuration contains invalid names or addresses.
func checkDNS(cfg *control.DNSConfig) error {
	if len(cfg.Zone) > maxZoneName || !isHostName(cfg.Zone) {
		return control.Misuse("zone %q: must be a domain name such as %s", cfg.Zone,
			control.DefaultZone)
	}
	if len(cfg.Servers) > maxServers {
		return control.Misuse("%d servers: must be at most %d", len(cfg.Servers), maxServers)
	}
	for _, a := range cfg.Servers {
		if !control.IsHost(a) {
			return control.Misuse("server %v: must be the address of a host", a)
		}
	}
	for _, n := range cfg.Names {
		if !isHostName(n.Name) {
			return control.Misuse("name %q: must be letters, digits, - and _, such as db1", n.Name)
		}
		for _, a := range n.Addrs {
			if !control.IsHost(a) || a.Zone() != "" {
				return control.Misuse("address %v of %s: must be a host address, without a zone", a,
					n.Name)
			}
		}
	}
	return nil
}

// isHostName reports whether a text is a domain name of the usual characters.
func isHostName(text string) bool {
	for label := range strings.SplitSeq(text, ".") {
		usual := strings.IndexFunc(lower(label), func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_'
		}) < 0
		if label == "" || len(label) > maxHostName || !usual {
			return false
		}
	}
	return true
}

// start opens the server's ports, unless they are open, and gives it a zone.
func (d *DNS) start(z *zone) error {
	if d.tcp == nil {
		on := d.node.AllAddrs(dnsPort)
		l, err := d.node.TCP.Listen(on, 0)
		if err != nil {
			return fmt.Errorf("dns: port %d: %w", dnsPort, control.Reason(err))
		}
		c, err := d.node.Packets.Listen(on)
		if err != nil {
			_ = l.Close() // the listener was not announced yet
			return fmt.Errorf("dns: UDP port %d: %w", dnsPort, control.Reason(err))
		}
		d.tcp, d.udp = l, c
		go d.serveDatagrams(c)
		go d.serveStreams(l)
	}
	d.zone.Store(z)
	return nil
}

// stop closes the server's ports. Its goroutines return.
func (d *DNS) stop() {
	if d.tcp == nil {
		return
	}
	_, _ = d.tcp.Close(), d.udp.Close() // ignores the errors, because nothing must be delivered
	d.tcp, d.udp = nil, nil
	d.zone.Store(nil)
}

// serveDatagrams answers each UDP query from the address that it was sent to (RFC 2181 §4.1).
func (d *DNS) serveDatagrams(c *node.PacketConn) {
	defer d.ended(c)
	buf := make([]byte, maxMessage)
	for {
		r, err := c.Receive(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the error is an ICMP error about an earlier answer
		}
		answer := d.answer(buf[:min(r.Len, len(buf))], 0)
		if answer == nil || r.From.Port() == 0 {
			continue
		}
		if err := c.SetOptions(func(o *node.UDPOptions) { o.Source = r.To }); err == nil {
			_, _ = c.WriteToAddrPort(answer, r.From) // UDP may lose it anyway
		}
	}
}

// ended closes the other port when a user has closed one.
func (d *DNS) ended(c *node.PacketConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.udp == c {
		d.stop()
		d.state.Names = nil
	}
}

// serveStreams answers queries over TCP (RFC 7766).
func (d *DNS) serveStreams(l *node.Listener) {
	few := &fewAtATime{Listener: l, room: make(chan struct{}, maxServed)}
	for {
		conn, err := few.Accept()
		if err != nil {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.tcp == l {
				_ = d.udp.Close() // makes serveDatagrams end the server
			}
			return
		}
		go func() {
			defer conn.Close()
			serveStream(conn, dnsIdle, func(query []byte) []byte {
				return d.answer(query, maxMessage)
			})
		}()
	}
}

// serveStream answers length-prefixed messages (RFC 1035 §4.2.2), until the client ends the
// connection, is idle, or sends a message without an answer.
func serveStream(conn net.Conn, idle time.Duration, answer func(query []byte) []byte) {
	for {
		if conn.SetDeadline(time.Now().Add(idle)) != nil {
			return
		}
		query, err := readMessage(conn)
		if err != nil {
			return
		}
		b := answer(query)
		if b == nil || writeMessage(conn, b) != nil {
			return
		}
	}
}

// ServePackets answers queries to a socket of this machine, until it is closed.
func (d *DNS) ServePackets(c net.PacketConn) {
	buf := make([]byte, maxMessage)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		if answer := d.answer(buf[:n], 0); answer != nil {
			_, _ = c.WriteTo(answer, from) // UDP may lose it anyway
		}
	}
}

// ServeListener answers queries on TCP connections of this machine, until l is closed.
func (d *DNS) ServeListener(l net.Listener) {
	few := netutil.LimitListener(l, maxServed)
	for {
		conn, err := few.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			serveStream(conn, dnsIdle, func(query []byte) []byte {
				return d.answer(query, maxMessage)
			})
		}()
	}
}

// readMessage reads a length-prefixed message.
func readMessage(r io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(r, b)
	return b, err
}

// writeMessage writes a length-prefixed message, in one segment (RFC 7766 §8).
func writeMessage(w io.Writer, b []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...))
	return err
}

// answer is zone.answer with counters.
func (d *DNS) answer(query []byte, limit int) []byte {
	z := d.zone.Load()
	if z == nil {
		return nil // the server is off
	}
	b, rcode := z.answer(query, limit)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.Queries++
	if b == nil {
		d.state.Dropped++
	} else {
		count(&d.state.Answers, rcodeName(rcode))
	}
	return b
}

func count(list *[]control.DNSCount, what string) {
	i := slices.IndexFunc(*list, func(c control.DNSCount) bool { return c.What == what })
	if i < 0 {
		i = len(*list)
		*list = append(*list, control.DNSCount{What: what})
	}
	(*list)[i].Count++
}

// rcodeName returns the name of a response code, such as NXDOMAIN, as other DNS programs print it.
func rcodeName(code dnsmessage.RCode) string {
	names := []string{"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"}
	if int(code) < len(names) {
		return names[code]
	}
	return fmt.Sprintf("RCODE%d", code)
}

func (d *DNS) show(context.Context, control.DNS) (control.DNSState, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.state
	s.Zone = cmp.Or(s.Zone, control.DefaultZone)
	s.Servers = append([]netip.Addr{}, s.Servers...)
	s.Names = append([]control.HostName{}, s.Names...)
	slices.SortFunc(s.Names, func(a, b control.HostName) int { return cmp.Compare(a.Name, b.Name) })
	s.Answers, s.Ignored = slices.Clone(s.Answers), slices.Clone(s.Ignored)
	return s, nil
}

func (d *DNS) set(ctx context.Context, r control.SetDNS) (control.DNSState, error) {
	if err := d.Configure(control.DNSConfig(r)); err != nil {
		return control.DNSState{}, err
	}
	return d.show(ctx, control.DNS{})
}
