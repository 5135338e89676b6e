package services_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/services"
)

func addrs(list ...string) (all []netip.Addr) {
	for _, a := range list {
		all = append(all, netip.MustParseAddr(a))
	}
	return all
}

// lab is a zone with two hosts and its server.
func lab(tb testing.TB) func([]byte, int) ([]byte, dnsmessage.RCode) {
	tb.Helper()
	many := make([]netip.Addr, 100)
	for i := range many {
		many[i] = netip.AddrFrom4([4]byte{10, 9, 0, byte(i + 1)})
	}
	answer, err := services.Zone(control.DNSConfig{Zone: "lab", Names: []control.HostName{
		{Name: "C", Addrs: addrs("10.1.0.2", "2001:db8:1::2")},
		{Name: "db.rack1", Addrs: addrs("10.2.0.2")},
		{Name: "many", Addrs: many},
	}}, control.HostName{Name: "A", Addrs: addrs("10.0.0.1")})
	require.NoError(tb, err)
	return answer
}

// query returns a query in wire format.
func query(tb testing.TB, name string, t dnsmessage.Type, change ...func(*dnsmessage.Message)) []byte {
	tb.Helper()
	m := &dnsmessage.Message{
		Header: dnsmessage.Header{ID: 0x1234, RecursionDesired: true},
		Questions: []dnsmessage.Question{{
			Name: dnsmessage.MustNewName(name), Type: t, Class: dnsmessage.ClassINET,
		}},
	}
	for _, f := range change {
		f(m)
	}
	b, err := m.Pack()
	require.NoError(tb, err)
	return b
}

// edns adds an OPT record that accepts answers of that size.
func edns(size int) func(*dnsmessage.Message) {
	return func(m *dnsmessage.Message) {
		h := dnsmessage.ResourceHeader{}
		_ = h.SetEDNS0(size, 0, false) // never fails, because the name is constant
		m.Additionals = append(m.Additionals, dnsmessage.Resource{
			Header: h, Body: &dnsmessage.OPTResource{},
		})
	}
}

// text returns the records of a section as words.
func text(list []dnsmessage.Resource) string {
	var words []string
	for _, r := range list {
		value := ""
		switch body := r.Body.(type) {
		case *dnsmessage.AResource:
			value = netip.AddrFrom4(body.A).String()
		case *dnsmessage.AAAAResource:
			value = netip.AddrFrom16(body.AAAA).String()
		case *dnsmessage.PTRResource:
			value = body.PTR.String()
		case *dnsmessage.NSResource:
			value = body.NS.String()
		case *dnsmessage.SOAResource:
			value = fmt.Sprint(body.MinTTL)
		}
		words = append(words, r.Header.Name.String()+" "+
			strings.TrimPrefix(r.Header.Type.String(), "Type")+" "+value)
	}
	return strings.Join(words, ", ")
}

// TestZone checks that a query for a name returns its records. If the name has no records of the
// type, or does not exist, the answer has an SOA record (RFC 2308 §2). The server answers for its
// zones only.
func TestZone(t *testing.T) {
	const soa = "lab. SOA 60"
	for _, tt := range []struct {
		name  string
		kind  dnsmessage.Type
		rcode dnsmessage.RCode
		want  string // expected answers, or else expected authorities
	}{
		{"C.lab.", dnsmessage.TypeA, 0, "C.lab. A 10.1.0.2"},            // RFC 1035 §3.4.1
		{"C.lab.", dnsmessage.TypeAAAA, 0, "C.lab. AAAA 2001:db8:1::2"}, // RFC 3596 §2.1
		{"c.LAB.", dnsmessage.TypeA, 0, "c.LAB. A 10.1.0.2"},            // RFC 4343 §3, §4.1
		{"C.lab.", dnsmessage.TypeALL, 0, "C.lab. A 10.1.0.2, C.lab. AAAA 2001:db8:1::2"},
		{"db.rack1.lab.", dnsmessage.TypeA, 0, "db.rack1.lab. A 10.2.0.2"},
		{"A.lab.", dnsmessage.TypeA, 0, "A.lab. A 10.0.0.1"}, // the server's own name
		// RFC 2308 §2.2: the name has no data of this type
		{"C.lab.", dnsmessage.TypeMX, 0, soa},
		{"db.rack1.lab.", dnsmessage.TypeAAAA, 0, soa},
		{"rack1.lab.", dnsmessage.TypeA, 0, soa}, // RFC 4592 §2.2.2: an empty name exists
		// RFC 2308 §2.1: the name does not exist
		{"x.lab.", dnsmessage.TypeA, dnsmessage.RCodeNameError, soa},
		{"x.C.lab.", dnsmessage.TypeA, dnsmessage.RCodeNameError, soa},
		{"lab.", dnsmessage.TypeNS, 0, "lab. NS A.lab."},
		{"lab.", dnsmessage.TypeSOA, 0, soa},
		{"2.0.1.10.in-addr.arpa.", dnsmessage.TypePTR, 0, "2.0.1.10.in-addr.arpa. PTR C.lab."}, // RFC 1035 §3.5
		{"1.10.in-addr.arpa.", dnsmessage.TypePTR, 0, "in-addr.arpa. SOA 60"},
		{"7.0.0.10.in-addr.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeNameError, "in-addr.arpa. SOA 60"},
		{ // RFC 3596 §2.5
			"2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.",
			dnsmessage.TypePTR, 0,
			"2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa. PTR C.lab.",
		},
		{"example.com.", dnsmessage.TypeA, dnsmessage.RCodeRefused, ""},
		{"xlab.", dnsmessage.TypeA, dnsmessage.RCodeRefused, ""},
		{"c.", dnsmessage.TypeA, dnsmessage.RCodeRefused, ""},
		{".", dnsmessage.TypeNS, dnsmessage.RCodeRefused, ""},
		{"lab.", dnsmessage.TypeAXFR, dnsmessage.RCodeRefused, ""},
	} {
		b, rcode := lab(t)(query(t, tt.name, tt.kind), 0)
		var m dnsmessage.Message
		require.NoError(t, m.Unpack(b), "%s", tt.name)
		assert.Equal(t, tt.rcode, rcode, "%s", tt.name)
		assert.Equal(t, tt.rcode, m.RCode, "%s", tt.name)
		for _, r := range append(m.Answers, m.Authorities...) {
			assert.Equal(t, uint32(60), r.Header.TTL, "RFC 2308 §5: also of a missing name")
		}
		got := text(m.Answers)
		if got == "" {
			got = text(m.Authorities)
		}
		assert.Equal(t, tt.want, got, "%s %v", tt.name, tt.kind)
		assert.Equal(t, uint16(0x1234), m.ID)
		assert.Equal(t, tt.name, m.Questions[0].Name.String())
		assert.True(t, m.Response && m.RecursionDesired && !m.RecursionAvailable)
		assert.Equal(t, tt.rcode != dnsmessage.RCodeRefused, m.Authoritative)
	}
}

// TestDNSMessageSize checks that an answer over UDP has at most 512 bytes (RFC 1035 §4.2.1), or as
// many as the client accepts, up to 1232 (RFC 6891 §6.2.5). A longer answer is truncated (RFC 2181
// §9).
func TestDNSMessageSize(t *testing.T) {
	for _, tt := range []struct {
		change    []func(*dnsmessage.Message)
		limit     int
		answers   int
		truncated bool
	}{
		{nil, 0, 0, true},
		{[]func(*dnsmessage.Message){edns(1232)}, 0, 0, true},
		{[]func(*dnsmessage.Message){edns(65535)}, 0, 0, true},
		// RFC 6891 §6.2.3: smaller sizes count as 512
		{[]func(*dnsmessage.Message){edns(100)}, 0, 0, true},
		{nil, 65535, 100, false}, // the limit of TCP
	} {
		b, _ := lab(t)(query(t, "many.lab.", dnsmessage.TypeA, tt.change...), tt.limit)
		var m dnsmessage.Message
		require.NoError(t, m.Unpack(b))
		assert.Equal(t, tt.truncated, m.Truncated)
		assert.Len(t, m.Answers, tt.answers)
		assert.Len(t, m.Additionals, len(tt.change), "RFC 6891 §6.1.1: an OPT record for an OPT record")
	}
	b, _ := lab(t)(query(t, "C.lab.", dnsmessage.TypeA, edns(512)), 0)
	var m dnsmessage.Message
	require.NoError(t, m.Unpack(b))
	assert.Equal(t, "C.lab. A 10.1.0.2", text(m.Answers))
	assert.Equal(t, dnsmessage.Class(1232), m.Additionals[0].Header.Class)
}

// TestBadQueries checks that the server reports malformed and unsupported queries, and does not
// respond to answers.
func TestBadQueries(t *testing.T) {
	two := func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) }
	good := query(t, "c.lab.", dnsmessage.TypeA)
	for name, tt := range map[string]struct {
		query []byte
		rcode dnsmessage.RCode
	}{
		"two questions, RFC 9619 §4":      {query(t, "c.lab.", 1, two), dnsmessage.RCodeFormatError},
		"no question":                     {query(t, "c.lab.", 1, func(m *dnsmessage.Message) { m.Questions = nil }), dnsmessage.RCodeFormatError},
		"two OPTs, RFC 6891 §6.1.1":       {query(t, "c.lab.", 1, edns(512), edns(512)), dnsmessage.RCodeFormatError},
		"a truncated question":            {good[:len(good)-3], dnsmessage.RCodeFormatError},
		"the header alone":                {good[:12], dnsmessage.RCodeFormatError},
		"65535 answers":                   {append([]byte{0, 1, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0}, good[12:]...), dnsmessage.RCodeFormatError},
		"a name that points to itself":    {[]byte("\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"), dnsmessage.RCodeFormatError},
		"a name that points ahead":        {[]byte("\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x20\x00\x01\x00\x01"), dnsmessage.RCodeFormatError},
		"a name longer than 255":          {[]byte("\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00" + strings.Repeat("\x3f"+strings.Repeat("a", 63), 5) + "\x00\x00\x01\x00\x01"), dnsmessage.RCodeFormatError},
		"an update, RFC 1035 §4.1.1":      {query(t, "c.lab.", 1, func(m *dnsmessage.Message) { m.OpCode = 5 }), dnsmessage.RCodeNotImplemented},
		"class CHAOS":                     {query(t, "c.lab.", 1, func(m *dnsmessage.Message) { m.Questions[0].Class = 3 }), dnsmessage.RCodeRefused},
		"EDNS version 1, RFC 6891 §6.1.3": {query(t, "c.lab.", 1, edns(512), func(m *dnsmessage.Message) { m.Additionals[0].Header.TTL = 1 << 16 }), 0},
	} {
		b, rcode := lab(t)(tt.query, 0)
		assert.Equal(t, tt.rcode, rcode, name)
		var m dnsmessage.Message
		require.NoError(t, m.Unpack(b), name)
		assert.True(t, m.Response, name)
		assert.Empty(t, m.Answers, name)
		if strings.HasPrefix(name, "EDNS") {
			assert.Equal(t, dnsmessage.RCode(16), m.Additionals[0].Header.ExtendedRCode(m.RCode))
		}
	}
	for name, b := range map[string][]byte{
		"empty": nil, "short": good[:11],
		"an answer": query(t, "c.lab.", 1, func(m *dnsmessage.Message) { m.Response = true }),
	} {
		b, _ := lab(t)(b, 0)
		assert.Nil(t, b, name)
	}
}

// TestForgedAnswers checks that a resolver accepts a message only if it answers the query (RFC 5452
// §9.1).
func TestForgedAnswers(t *testing.T) {
	var asked dnsmessage.Message
	b := query(t, "c.lab.", dnsmessage.TypeA)
	require.NoError(t, asked.Unpack(b))
	reply := func(change func(*dnsmessage.Message)) []byte {
		return query(t, "c.lab.", dnsmessage.TypeA, func(m *dnsmessage.Message) {
			m.Response = true
			change(m)
		})
	}
	for want, b := range map[string][]byte{
		"":               reply(func(m *dnsmessage.Message) { m.Questions[0].Name = dnsmessage.MustNewName("C.LAB.") }),
		"not an answer":  b,
		"wrong ID":       reply(func(m *dnsmessage.Message) { m.ID++ }),
		"wrong question": reply(func(m *dnsmessage.Message) { m.Questions[0].Name = dnsmessage.MustNewName("d.lab.") }),
		"malformed":      b[:20],
	} {
		assert.Equal(t, want, services.Accept(&asked, b), want)
	}
	for name, b := range map[string][]byte{
		"type":        reply(func(m *dnsmessage.Message) { m.Questions[0].Type = dnsmessage.TypeAAAA }),
		"class":       reply(func(m *dnsmessage.Message) { m.Questions[0].Class = 3 }),
		"no question": reply(func(m *dnsmessage.Message) { m.Questions = nil }),
	} {
		assert.Equal(t, "wrong question", services.Accept(&asked, b), name)
	}
}

// TestDNSOverTCP checks that a length precedes each message on a connection (RFC 1035 §4.2.2), in
// the same segment as the answer (RFC 7766 §8). A client may send several queries at once. The
// server closes an idle connection (RFC 7766 §6.2.3).
func TestDNSOverTCP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer client.Close()
		answer := lab(t)
		done := make(chan struct{})
		go func() {
			services.ServeStream(server, func(q []byte) []byte {
				b, _ := answer(q, 65535)
				return b
			})
			_ = server.Close()
			close(done)
		}()
		var two []byte
		for _, name := range []string{"c.lab.", "many.lab."} {
			q := query(t, name, dnsmessage.TypeA)
			two = append(binary.BigEndian.AppendUint16(two, uint16(len(q))), q...)
		}
		go func() { _, _ = client.Write(two) }()
		buf := make([]byte, 65537)
		for _, want := range []int{1, 100} {
			n, err := client.Read(buf) // a pipe does not join separate writes
			require.NoError(t, err)
			require.Equal(t, n-2, int(binary.BigEndian.Uint16(buf)))
			var m dnsmessage.Message
			require.NoError(t, m.Unpack(buf[2:n]))
			assert.Len(t, m.Answers, want)
		}
		began := time.Now()
		<-done
		assert.Equal(t, 10*time.Second, time.Since(began))
	})
}

// FuzzDNSQuery checks that every answer of the server is well-formed, within its limit, and an
// answer to the query.
func FuzzDNSQuery(f *testing.F) {
	f.Add(query(f, "c.lab.", dnsmessage.TypeA))
	f.Add(query(f, "many.lab.", dnsmessage.TypeALL, edns(4096)))
	f.Add(query(f, "2.0.1.10.in-addr.arpa.", dnsmessage.TypePTR))
	answer := lab(f)
	f.Fuzz(func(t *testing.T, q []byte) {
		for _, limit := range []int{0, 65535} {
			b, _ := answer(q, limit)
			if b == nil {
				continue
			}
			var m dnsmessage.Message
			require.NoError(t, m.Unpack(b))
			assert.True(t, m.Response)
			assert.Equal(t, q[:2], b[:2])
			if limit == 0 {
				assert.LessOrEqual(t, len(b), 1232)
			}
		}
	})
}

// FuzzDNSAnswer checks that a resolver accepts only well-formed messages that answer its query.
func FuzzDNSAnswer(f *testing.F) {
	var asked dnsmessage.Message
	require.NoError(f, asked.Unpack(query(f, "c.lab.", dnsmessage.TypeA)))
	good, _ := lab(f)(query(f, "c.lab.", dnsmessage.TypeA), 0)
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		if services.Accept(&asked, b) == "" {
			var m dnsmessage.Message
			require.NoError(t, m.Unpack(b))
			assert.Equal(t, asked.ID, m.ID)
			assert.True(t, strings.EqualFold("c.lab.", m.Questions[0].Name.String()))
		}
	})
}
