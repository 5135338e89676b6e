package services

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/tidepool-net/tidepool/internal/control"
)

// These are limits of DNS messages.
const (
	dnsPort    = 53
	udpMessage = 512  // maximum size without EDNS (RFC 1035 §4.2.1)
	ednsUDP    = 1232 // fits in a packet of every IPv6 link
	maxMessage = 65535
	// dnsTTL is the TTL of all records in seconds, and of negative answers (RFC 2308 §5).
	dnsTTL = 60

	typeIXFR = dnsmessage.Type(251) // incremental zone transfer (RFC 1995)
	badVers  = dnsmessage.RCode(16) // unsupported EDNS version (RFC 6891 §6.1.3)
)

// reverseZones are the zones of addresses. The server answers for all addresses, because no other
// server of the network does.
var reverseZones = []string{"in-addr.arpa.", "ip6.arpa."}

// zone is the content of a server: the hosts of a zone, and the names of their addresses. Its names
// are in lower case (RFC 4343 §3) and end in a dot.
type zone struct {
	origin string
	server dnsmessage.Name
	addrs  map[string][]netip.Addr
	hosts  map[string][]dnsmessage.Name // host names by the reverse names of their addresses
	exist  map[string]bool              // all names, including those between them and the zone
}

// newZone returns the zone of a configuration. It includes self, the name of the server.
func newZone(cfg *control.DNSConfig, self control.HostName) (*zone, error) {
	z := &zone{
		origin: lower(cfg.Zone) + ".", addrs: map[string][]netip.Addr{},
		hosts: map[string][]dnsmessage.Name{}, exist: map[string]bool{},
	}
	var err error
	if z.server, err = dnsmessage.NewName(self.Name + "." + cfg.Zone + "."); err != nil {
		return nil, control.Misuse("the zone %q is too long", cfg.Zone)
	}
	for _, apex := range append([]string{z.origin}, reverseZones...) {
		z.exist[apex] = true
	}
	names := cfg.Names
	if !slices.ContainsFunc(names, func(h control.HostName) bool {
		return lower(h.Name) == lower(self.Name)
	}) {
		names = append(slices.Clip(names), self)
	}
	for _, h := range names {
		name, err := dnsmessage.NewName(h.Name + "." + cfg.Zone + ".")
		if err != nil {
			return nil, control.Misuse("the name %q is too long for the zone %q", h.Name, cfg.Zone)
		}
		key := lower(name.String())
		z.add(key)
		z.addrs[key] = append(z.addrs[key], h.Addrs...)
		for _, a := range h.Addrs {
			back := reverseName(a)
			z.add(back)
			z.hosts[back] = append(z.hosts[back], name)
		}
	}
	return z, nil
}

// add adds a name, and the empty names between it and its zone (RFC 4592 §2.2.2).
func (z *zone) add(name string) {
	for !z.exist[name] && name != "" {
		z.exist[name] = true
		_, name, _ = strings.Cut(name, ".")
	}
}

// apex returns the zone of a name. It returns "" if the name belongs to another server.
func (z *zone) apex(name string) string {
	for _, apex := range append([]string{z.origin}, reverseZones...) {
		if name == apex || strings.HasSuffix(name, "."+apex) {
			return apex
		}
	}
	return ""
}

// answer returns the answer to a message, and its response code. The answer is nil if the message
// must not be answered. limit is the maximum length of the answer in bytes. A limit of 0 stands for
// UDP's limit, which the query may raise.
func (z *zone) answer(query []byte, limit int) ([]byte, dnsmessage.RCode) {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response { // an answer to an answer could cause a loop
		return nil, 0
	}
	m := dnsmessage.Message{Header: dnsmessage.Header{
		ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired,
	}}
	size := udpMessage
	if h.OpCode != 0 {
		m.RCode = dnsmessage.RCodeNotImplemented
	} else if opt, ok := z.read(&p, &m); !ok {
		m.RCode = dnsmessage.RCodeFormatError
	} else {
		if opt != nil {
			size = max(size, min(int(opt.Class), ednsUDP))
		}
		z.fill(&m, opt)
	}
	if limit == 0 {
		limit = size
	}
	return packWithin(&m, limit), m.RCode
}

// read reads the question and the OPT record of a query, which may be nil. It reports whether the
// query is well-formed: it has one question (RFC 9619 §4) and at most one OPT record (RFC 6891
// §6.1.1).
func (z *zone) read(
	p *dnsmessage.Parser, m *dnsmessage.Message,
) (*dnsmessage.ResourceHeader, bool) {
	q, err := p.Question()
	if err != nil {
		return nil, false
	}
	if _, err := p.Question(); err != dnsmessage.ErrSectionDone { //nolint:errorlint // not wrapped
		return nil, false
	}
	m.Questions = []dnsmessage.Question{q}
	if p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return nil, false
	}
	var opt *dnsmessage.ResourceHeader
	for {
		r, err := p.AdditionalHeader()
		if err != nil {
			return opt, err == dnsmessage.ErrSectionDone //nolint:errorlint // not wrapped
		}
		if r.Type == dnsmessage.TypeOPT {
			if opt != nil || r.Name.String() != "." {
				return nil, false
			}
			opt = &r
		}
		if p.SkipAdditional() != nil {
			return nil, false
		}
	}
}

// fill answers the question of m.
func (z *zone) fill(m *dnsmessage.Message, opt *dnsmessage.ResourceHeader) {
	rcode := z.find(m)
	if opt != nil {
		h := dnsmessage.ResourceHeader{}
		if version := opt.TTL >> 16 & 0xff; version > 0 {
			rcode, m.Answers, m.Authorities, m.Authoritative = badVers, nil, nil, false
		}
		_ = h.SetEDNS0(ednsUDP, rcode, false) // never fails, because the name is constant
		m.Additionals = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.OPTResource{}}}
	}
	m.RCode = rcode & 0xf
}

// find adds the records of a name to m. If there are none, it adds the SOA record (RFC 2308 §2).
func (z *zone) find(m *dnsmessage.Message) dnsmessage.RCode {
	q := &m.Questions[0]
	name := lower(q.Name.String())
	apex := z.apex(name)
	inet := q.Class == dnsmessage.ClassINET || q.Class == dnsmessage.ClassANY
	if apex == "" || !inet || q.Type == dnsmessage.TypeAXFR || q.Type == typeIXFR {
		return dnsmessage.RCodeRefused
	}
	m.Authoritative = true
	for _, body := range z.bodies(name, apex) {
		if q.Type == typeOf(body) || q.Type == dnsmessage.TypeALL {
			m.Answers = append(m.Answers, record(q.Name, body))
		}
	}
	if len(m.Answers) > 0 {
		return dnsmessage.RCodeSuccess
	}
	m.Authorities = []dnsmessage.Resource{record(dnsmessage.MustNewName(apex), z.soa())}
	if !z.exist[name] {
		return dnsmessage.RCodeNameError
	}
	return dnsmessage.RCodeSuccess
}

func (z *zone) bodies(name, apex string) (list []dnsmessage.ResourceBody) {
	if name == apex {
		list = append(list, z.soa(), &dnsmessage.NSResource{NS: z.server})
	}
	for _, a := range z.addrs[name] {
		if a.Is4() {
			list = append(list, &dnsmessage.AResource{A: a.As4()})
		} else {
			list = append(list, &dnsmessage.AAAAResource{AAAA: a.As16()}) // RFC 3596 §2.1
		}
	}
	for _, host := range z.hosts[name] {
		list = append(list, &dnsmessage.PTRResource{PTR: host})
	}
	return list
}

func (z *zone) soa() *dnsmessage.SOAResource {
	mail := dnsmessage.MustNewName("hostmaster." + z.origin)
	return &dnsmessage.SOAResource{
		NS: z.server, MBox: mail, Serial: 1, Refresh: 3600, Retry: 600, Expire: 86400,
		MinTTL: dnsTTL,
	}
}

func record(name dnsmessage.Name, body dnsmessage.ResourceBody) dnsmessage.Resource {
	return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{
		Name: name, Type: typeOf(body), Class: dnsmessage.ClassINET, TTL: dnsTTL,
	}, Body: body}
}

func typeOf(body dnsmessage.ResourceBody) dnsmessage.Type {
	switch body.(type) {
	case *dnsmessage.AResource:
		return dnsmessage.TypeA
	case *dnsmessage.AAAAResource:
		return dnsmessage.TypeAAAA
	case *dnsmessage.PTRResource:
		return dnsmessage.TypePTR
	case *dnsmessage.NSResource:
		return dnsmessage.TypeNS
	case *dnsmessage.CNAMEResource:
		return dnsmessage.TypeCNAME
	}
	return dnsmessage.TypeSOA
}

// packWithin returns m as bytes. If it is longer than the limit, it is truncated to the question
// and the OPT record, with the TC bit set (RFC 2181 §9).
func packWithin(m *dnsmessage.Message, limit int) []byte {
	b, err := m.Pack()
	if err != nil || len(b) > limit {
		m.Truncated, m.Answers, m.Authorities = true, nil, nil
		b, _ = m.Pack() // never fails, because the question was parsed
	}
	return b
}

// reverseName returns the name of an address's PTR records (RFC 1035 §3.5, RFC 3596 §2.5).
func reverseName(a netip.Addr) string {
	var b strings.Builder
	if a.Is4() {
		for _, octet := range slices.Backward(a.AsSlice()) {
			fmt.Fprintf(&b, "%d.", octet)
		}
		return b.String() + reverseZones[0]
	}
	for _, octet := range slices.Backward(a.AsSlice()) {
		fmt.Fprintf(&b, "%x.%x.", octet&0xf, octet>>4)
	}
	return b.String() + reverseZones[1]
}

// lower converts ASCII letters only (RFC 4343 §3).
func lower(name string) string {
	b := []byte(name)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
