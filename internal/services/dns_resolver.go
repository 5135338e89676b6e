package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/tidepool-net/tidepool/internal/control"
)

// The resolver asks each server once per round. These are the timeouts of one query in each round;
// they double (RFC 1536 §1). The resolver caches no answers, so there is no cache to poison.
var dnsTimeouts = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}

// maxAliases limits the queries for one name, and the CNAME records that are followed in one
// answer, so that CNAME loops end.
const maxAliases = 8

// These are the reasons for which the resolver ignores a message (RFC 5452 §9.1). Messages from
// other addresses and ports do not reach its socket.
const (
	ignoredMalformed = "malformed"
	ignoredQuery     = "not an answer"
	ignoredID        = "wrong ID"
	ignoredQuestion  = "wrong question"
)

// Lookup returns the addresses of a name, as net.Resolver.LookupNetIP does: the network is "ip",
// "ip4" or "ip6". An error is a *net.DNSError, or the cause of ctx.
func (d *DNS) Lookup(ctx context.Context, network, name string) ([]netip.Addr, error) {
	var list []netip.Addr
	types := map[string][]dnsmessage.Type{
		"ip4": {dnsmessage.TypeA}, "ip6": {dnsmessage.TypeAAAA},
		"ip": {dnsmessage.TypeA, dnsmessage.TypeAAAA},
	}
	for _, t := range types[network] {
		answers, err := d.Ask(ctx, name, t)
		if err != nil && len(list) == 0 {
			return nil, err
		}
		for _, r := range answers {
			switch body := r.Body.(type) {
			case *dnsmessage.AResource:
				list = append(list, netip.AddrFrom4(body.A))
			case *dnsmessage.AAAAResource:
				list = append(list, netip.AddrFrom16(body.AAAA))
			}
		}
	}
	if len(list) == 0 {
		what := map[string]string{"ip4": "IPv4 ", "ip6": "IPv6 "}[network]
		return nil, &net.DNSError{Err: "no " + what + "address", Name: name, IsNotFound: true}
	}
	return list, nil
}

// LookupAddr returns the names of an address, with the dot at their end.
func (d *DNS) LookupAddr(ctx context.Context, a netip.Addr) (names []string, err error) {
	answers, err := d.Ask(ctx, reverseName(a.Unmap().WithZone("")), dnsmessage.TypePTR)
	for _, r := range answers {
		if body, ok := r.Body.(*dnsmessage.PTRResource); ok {
			names = append(names, body.PTR.String())
		}
	}
	if err == nil && len(names) == 0 {
		err = &net.DNSError{Err: "no such host", Name: a.String(), IsNotFound: true}
	}
	return names, err
}

// HasServer reports whether the node has a DNS server to ask.
func (d *DNS) HasServer() bool { servers, _ := d.config(); return len(servers) > 0 }

func (d *DNS) config() (servers []netip.Addr, zone string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state.Servers, d.state.Zone
}

// Ask looks up the records of one type for a name, and puts the aliases that lead to them first. A
// name without a dot is a name of the node's zone.
func (d *DNS) Ask(
	ctx context.Context, name string, t dnsmessage.Type,
) (list []dnsmessage.Resource, err error) {
	fail := func(text string, of *net.DNSError) ([]dnsmessage.Resource, error) {
		of.Err, of.Name = text, name
		return nil, of
	}
	servers, zone := d.config()
	if len(servers) == 0 {
		return fail("no such host: the node has no DNS server (`node net names FOLDER` adds one)",
			&net.DNSError{IsNotFound: true})
	}
	full := strings.TrimSuffix(name, ".")
	if !strings.Contains(full, ".") {
		full += "." + zone
	}
	target, err := dnsmessage.NewName(full + ".")
	if err != nil || !isHostName(full) {
		return fail("no such host: not a domain name", &net.DNSError{IsNotFound: true})
	}
	for range maxAliases {
		m, server, err := d.query(ctx, servers, dnsmessage.Question{
			Name: target, Type: t, Class: dnsmessage.ClassINET,
		})
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return fail(err.Error(), &net.DNSError{
				Server: server.String(), IsTimeout: errors.Is(err, os.ErrDeadlineExceeded),
				IsTemporary: true, UnwrapErr: err,
			})
		case m.RCode == dnsmessage.RCodeNameError:
			return fail("no such host", &net.DNSError{Server: server.String(), IsNotFound: true})
		case m.RCode == dnsmessage.RCodeRefused: // a closed network has no other server
			return fail("no such host: not in the server's zone",
				&net.DNSError{Server: server.String(), IsNotFound: true})
		case m.RCode != dnsmessage.RCodeSuccess:
			return fail("the server answers "+rcodeName(m.RCode), &net.DNSError{
				Server: server.String(), IsTemporary: m.RCode == dnsmessage.RCodeServerFailure,
			})
		}
		var more []dnsmessage.Resource
		more, target = follow(m.Answers, target, t)
		if list = append(list, more...); target.Length == 0 {
			return list, nil
		}
	}
	return fail(fmt.Sprintf("more than %d aliases", maxAliases), &net.DNSError{})
}

// follow returns the records of a name from an answer, with the aliases before them. next is the
// alias to query next, or its zero value if the answer is complete.
func follow(
	answers []dnsmessage.Resource, name dnsmessage.Name, t dnsmessage.Type,
) (list []dnsmessage.Resource, next dnsmessage.Name) {
	for range maxAliases {
		alias := dnsmessage.Name{}
		found := false
		for _, r := range answers {
			body, is := r.Body.(*dnsmessage.CNAMEResource)
			switch {
			case lower(r.Header.Name.String()) != lower(name.String()):
			case r.Header.Type == t:
				list, found = append(list, r), true
			case is && alias.Length == 0:
				list, alias = append(list, r), body.CNAME
			}
		}
		if found || alias.Length == 0 {
			return list, next
		}
		name, next = alias, alias
		has := func(r dnsmessage.Resource) bool {
			return lower(r.Header.Name.String()) == lower(alias.String())
		}
		if !slices.ContainsFunc(answers, has) {
			return list, next
		}
		next = dnsmessage.Name{}
	}
	return list, name // a loop: Ask queries again, but at most maxAliases times
}

// query asks the servers one after the other, several times, and returns the first answer.
func (d *DNS) query(
	ctx context.Context, servers []netip.Addr, q dnsmessage.Question,
) (m *dnsmessage.Message, server netip.Addr, err error) {
	for _, timeout := range dnsTimeouts {
		for _, server = range servers {
			m, err = d.exchange(ctx, netip.AddrPortFrom(server, dnsPort), q, timeout)
			if err == nil || ctx.Err() != nil {
				return m, server, err
			}
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = control.Also(errors.New("no answer"), os.ErrDeadlineExceeded)
	}
	return nil, server, control.Reason(err)
}

// exchange sends a query over UDP, and over TCP if the answer is truncated (RFC 7766 §5). The
// query's ID is random, and the node chooses a random port (RFC 5452 §9.2).
func (d *DNS) exchange(
	ctx context.Context, server netip.AddrPort, q dnsmessage.Question, timeout time.Duration,
) (*dnsmessage.Message, error) {
	ctx, cancel := d.node.Time.Within(ctx, timeout)
	defer cancel()
	edns := dnsmessage.ResourceHeader{}
	_ = edns.SetEDNS0(ednsUDP, 0, false) // never fails, because the name is constant
	var id uint16
	d.count(func(*control.DNSState) {
		if d.random == nil {
			d.random = d.node.Secrets("dns")
		}
		id = uint16(d.random())
	})
	query := &dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{q},
		Additionals: []dnsmessage.Resource{
			{Header: edns, Body: &dnsmessage.OPTResource{}},
		},
	}
	b, err := query.Pack()
	if err != nil {
		return nil, err
	}
	m, err := d.exchangeUDP(ctx, server, query, b)
	if err == nil && m.Truncated {
		m, err = d.exchangeTCP(ctx, server, query, b)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return m, err
}

func (d *DNS) exchangeUDP(
	ctx context.Context, server netip.AddrPort, query *dnsmessage.Message, b []byte,
) (*dnsmessage.Message, error) {
	conn, err := d.node.Packets.Dial(server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	d.count(func(s *control.DNSState) { s.Asked++ })
	if _, err := conn.Write(b); err != nil {
		return nil, err
	}
	buf := make([]byte, maxMessage)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return nil, err
		}
		if m := d.accept(query, buf[:n]); m != nil {
			return m, nil
		}
	}
}

func (d *DNS) exchangeTCP(
	ctx context.Context, server netip.AddrPort, query *dnsmessage.Message, b []byte,
) (*dnsmessage.Message, error) {
	conn, err := d.node.TCP.Dial(ctx, server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	d.count(func(s *control.DNSState) { s.Asked++ })
	if err := writeMessage(conn, b); err != nil {
		return nil, err
	}
	for {
		b, err := readMessage(conn)
		if err != nil {
			return nil, err
		}
		if m := d.accept(query, b); m != nil {
			return m, nil
		}
	}
}

func (d *DNS) count(f func(*control.DNSState)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.state)
}

// accept returns a message if it answers the query (RFC 5452 §9.1). It counts other messages.
func (d *DNS) accept(query *dnsmessage.Message, b []byte) *dnsmessage.Message {
	m := &dnsmessage.Message{}
	why := ""
	switch err := m.Unpack(b); {
	case err != nil:
		why = ignoredMalformed
	case !m.Response || m.OpCode != 0:
		why = ignoredQuery
	case m.ID != query.ID:
		why = ignoredID
	case len(m.Questions) != 1 || !sameQuestion(&m.Questions[0], &query.Questions[0]):
		why = ignoredQuestion
	default:
		return m
	}
	d.count(func(s *control.DNSState) { count(&s.Ignored, why) })
	return nil
}

func sameQuestion(a, b *dnsmessage.Question) bool {
	return a.Type == b.Type && a.Class == b.Class &&
		lower(a.Name.String()) == lower(b.Name.String())
}

func (d *DNS) resolve(ctx context.Context, r control.Resolve) (control.Resolved, error) {
	done := control.Resolved{Name: r.Name}
	network := map[int]string{0: "ip", 4: "ip4", 6: "ip6"}[r.Family]
	if network == "" {
		return done, control.Misuse("family %d: must be 4, 6 or 0 for both", r.Family)
	}
	var err error
	if a, bad := netip.ParseAddr(r.Name); bad == nil {
		done.Names, err = d.LookupAddr(ctx, a)
	} else if done.Addrs, err = d.Lookup(ctx, network, r.Name); err == nil {
		err = d.node.SortAddrs(done.Addrs)
	}
	return done, reasonOfDNS(r.Name, err)
}

// reasonOfDNS converts an error of a lookup to one of package control.
func reasonOfDNS(name string, err error) error {
	of, ok := errors.AsType[*net.DNSError](err)
	if !ok {
		return err
	}
	switch {
	case of.IsNotFound && of.Server == "":
		return control.Also(fmt.Errorf("%s: %s", name, of.Err), control.ErrNoSuchName)
	case of.IsNotFound:
		return control.Also(fmt.Errorf("%s: %s (DNS server %s)", name, of.Err, of.Server),
			control.ErrNoSuchName)
	case of.Server == "":
		return fmt.Errorf("%s: %s", name, of.Err)
	}
	why := of.Unwrap()
	if of.IsTimeout {
		why = control.ErrTimeout
	}
	return control.Also(fmt.Errorf("%s: DNS server %s: %s", name, of.Server, of.Err), why)
}

// ServeStub answers queries at conn as a resolver does, until the other end closes it or ctx ends.
// known returns addresses that need no DNS server. If its error is a *net.DNSError with IsNotFound,
// ServeStub asks the server.
func (d *DNS) ServeStub(
	ctx context.Context, conn net.Conn,
	known func(ctx context.Context, network, name string) ([]netip.Addr, error),
) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	serveStream(conn, time.Hour, func(query []byte) []byte {
		m := &dnsmessage.Message{}
		if m.Unpack(query) != nil || len(m.Questions) != 1 {
			return nil
		}
		q := m.Questions[0]
		answer := &dnsmessage.Message{Header: dnsmessage.Header{
			ID: m.ID, Response: true, RecursionDesired: m.RecursionDesired,
			RecursionAvailable: true,
		}, Questions: m.Questions}
		var err error
		answer.Answers, err = d.stub(ctx, &q, known)
		of, _ := errors.AsType[*net.DNSError](err)
		switch {
		case of != nil && of.IsNotFound:
			answer.RCode = dnsmessage.RCodeNameError
		case err != nil:
			answer.RCode = dnsmessage.RCodeServerFailure
		}
		return packWithin(answer, maxMessage)
	})
}

// stub returns the records that answer a question.
func (d *DNS) stub(
	ctx context.Context, q *dnsmessage.Question,
	known func(ctx context.Context, network, name string) ([]netip.Addr, error),
) ([]dnsmessage.Resource, error) {
	name := q.Name.String()
	list, err := known(ctx, "ip", strings.TrimSuffix(name, "."))
	if of, ok := errors.AsType[*net.DNSError](err); ok && of.IsNotFound {
		answers, err := d.Ask(ctx, name, q.Type)
		if err == nil && len(answers) > 0 && answers[0].Header.Name.String() != name {
			answers = append([]dnsmessage.Resource{
				record(q.Name, &dnsmessage.CNAMEResource{CNAME: answers[0].Header.Name}),
			}, answers...)
		}
		return answers, err
	}
	var answers []dnsmessage.Resource
	for _, a := range list {
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			answers = append(answers, record(q.Name, &dnsmessage.AResource{A: a.As4()}))
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			answers = append(answers, record(q.Name, &dnsmessage.AAAAResource{AAAA: a.As16()}))
		}
	}
	return answers, err
}
