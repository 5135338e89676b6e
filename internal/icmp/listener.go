package icmp

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// Listener reports the multicast groups of an interface to the routers of its link, as a host does:
// with MLD version 2 (RFC 3810 §6) or IGMP version 3 (RFC 3376 §5). It requests all sources of a
// group. It does not use the older versions even if a router does.
type Listener struct {
	rng    *rand.Rand
	v6     bool
	groups []membership
	answer clock.Time // when the answer to a general query is due
}

// membership is a group that is reported.
type membership struct {
	group   netip.Addr
	left    bool       // the interface has left the group
	reports int        // number of reports of the change that are left to send
	due     clock.Time // when the next report is sent
	answer  clock.Time // when the answer to a query of the group is due
}

// These are the defaults of RFC 3810 §9 and RFC 3376 §8, the types of records (RFC 3810 §5.2.12,
// RFC 3376 §4.2.12), and the types of IGMP's messages.
const (
	robustness        = 2
	reportInterval    = time.Second
	isExclude         = 2
	changeToInclude   = 3
	changeToExclude   = 4
	typeIGMPQuery     = 0x11
	typeIGMPReport    = 0x22
	protocolIGMP      = 2
	defaultIGMP1Reply = 10 * time.Second
	// maxGroups keeps a report in a packet of 1280 bytes.
	maxGroups = 60
)

var (
	allMLDRouters  = netip.MustParseAddr("ff02::16")
	allIGMPRouters = netip.AddrFrom4([4]byte{224, 0, 0, 22})
	allSystems     = netip.AddrFrom4([4]byte{224, 0, 0, 1})
)

// NewListener returns a listener of IPv6 or IPv4.
func NewListener(rng *rand.Rand, v6 bool) *Listener { return &Listener{rng: rng, v6: v6} }

// Join reports that the interface joins a group. It returns false if there are too many groups.
func (l *Listener) Join(now clock.Time, group netip.Addr) bool {
	return l.change(now, group, false)
}

// Leave reports that the interface has left a group.
func (l *Listener) Leave(now clock.Time, group netip.Addr) {
	if l.IsMember(group) {
		l.change(now, group, true)
	}
}

// IsMember reports whether the interface has joined a group.
func (l *Listener) IsMember(group netip.Addr) bool {
	m := l.find(group)
	return m != nil && !m.left
}

func (l *Listener) find(group netip.Addr) *membership {
	group = group.WithZone("")
	for k := range l.groups {
		if l.groups[k].group == group {
			return &l.groups[k]
		}
	}
	return nil
}

func (l *Listener) change(now clock.Time, group netip.Addr, left bool) bool {
	group = group.WithZone("")
	m := l.find(group)
	if m == nil {
		if len(l.groups) >= maxGroups {
			return false
		}
		l.groups = append(l.groups, membership{group: group, left: true})
		m = &l.groups[len(l.groups)-1]
	}
	if m.left != left {
		*m = membership{group: group, left: left, reports: robustness, due: now}
	}
	return true
}

// reported reports whether reports contain a group. They do not contain the group of all nodes, nor
// those of interface-local scope (RFC 3810 §6, RFC 3376 §5).
func reported(group netip.Addr) bool {
	return group != allNodes && group != allSystems && !group.IsInterfaceLocalMulticast()
}

// Query is a query of a multicast router. Its sources are ignored, because a Listener requests all
// sources.
type Query struct {
	Group netip.Addr    // queried group; invalid: every group
	Delay time.Duration // maximum time to answer
}

// parseQuery6 parses a query of MLD version 1 or 2 (RFC 3810 §5.1 and §6.2).
func parseQuery6(m *Message, src netip.Addr, hopLimit uint8) (q Query, r Refusal) {
	switch {
	case hopLimit != 1:
		return q, RefusedHopLimit
	case !src.IsLinkLocalUnicast():
		return q, RefusedSource
	case m.Code != 0:
		return q, RefusedCode
	case len(m.Body) < 20 && len(m.Body) != 16:
		return q, RefusedLength // RFC 3810 §8.1: the length fits neither version
	}
	code := int(binary.BigEndian.Uint16(m.Rest[:]))
	if code >= 1<<15 && len(m.Body) > 16 { // RFC 3810 §5.1.3
		code = (code&0xfff | 0x1000) << (code>>12&7 + 3)
	}
	q.Delay = time.Duration(code) * time.Millisecond
	q.Group = netip.AddrFrom16([16]byte(m.Body))
	return q.check()
}

// ParseQuery parses an IGMP message if it is a query (RFC 3376 §4.1). The TTL must be 1.
func ParseQuery(b []byte, ttl uint8) (q Query, r Refusal) {
	switch {
	case len(b) < 12 && len(b) != HeaderLen, !checksum.Verify(b, 0):
		return q, RefusedLength // RFC 3376 §7.1: the length fits no version
	case b[0] != typeIGMPQuery:
		return q, RefusedType
	case ttl != 1:
		return q, RefusedHopLimit
	}
	code := int(b[1])
	if code >= 1<<7 && len(b) > HeaderLen { // RFC 3376 §4.1.1
		code = (code&0xf | 0x10) << (code>>4&7 + 3)
	}
	q.Delay = time.Duration(code) * time.Second / 10
	if code == 0 && len(b) == HeaderLen {
		q.Delay = defaultIGMP1Reply // RFC 3376 §7.2.1: version 1 has no such field
	}
	q.Group = netip.AddrFrom4([4]byte(b[4:]))
	return q.check()
}

func (q Query) check() (Query, Refusal) {
	if q.Group.IsUnspecified() {
		q.Group = netip.Addr{}
	} else if !q.Group.IsMulticast() {
		return q, RefusedTarget
	}
	return q, Accepted
}

// Query schedules the answer to a query (RFC 3810 §6.2, RFC 3376 §5.2). An answer that is due
// earlier serves this query, too.
func (l *Listener) Query(now clock.Time, q Query) {
	at := now.Later(time.Duration(l.rng.Int64N(int64(q.Delay) + 1)))
	if !q.Group.IsValid() {
		l.answer = clock.Earliest(l.answer, at)
	} else if m := l.find(q.Group); m != nil {
		m.answer = clock.Earliest(m.answer, at)
	}
}

// Deadline returns when to call Output next.
func (l *Listener) Deadline() clock.Time {
	t := l.answer
	for k := range l.groups {
		t = clock.Earliest(t, l.groups[k].due, l.groups[k].answer)
	}
	return t
}

// Output returns the report that is due, with the source address src.
func (l *Listener) Output(now clock.Time, src netip.Addr, out *Outgoing) bool {
	var records []byte
	count := 0
	general := l.answer.Due(now)
	for k := range l.groups {
		m := &l.groups[k]
		kind := uint8(0)
		switch {
		case m.due.Due(now):
			kind = changeToExclude
			if m.left {
				kind = changeToInclude
			}
			m.reports--
			m.due = clock.Never
			if m.reports > 0 {
				m.due = now.Later(time.Duration(l.rng.Int64N(int64(reportInterval))))
			}
		case !m.left && (general || m.answer.Due(now)):
			kind = isExclude
		}
		if general || m.answer.Due(now) {
			m.answer = clock.Never
		}
		if kind != 0 && reported(m.group) {
			count++
			records = append(append(records, kind, 0, 0, 0), m.group.AsSlice()...)
		}
	}
	if general {
		l.answer = clock.Never
	}
	l.groups = slices.DeleteFunc(l.groups, func(m membership) bool {
		return m.left && m.reports == 0
	})
	if count == 0 {
		return false
	}
	*out = l.report(src, count, records)
	return true
}

// report returns a report with a number of records (RFC 3810 §5.2, RFC 3376 §4.2).
func (l *Listener) report(src netip.Addr, count int, records []byte) Outgoing {
	out := Outgoing{Src: src, Dst: allMLDRouters, HopLimit: 1, RouterAlert: true}
	m := Message{Type: TypeListenerReport, Rest: [4]byte{3: byte(count)}, Body: records}
	out.Protocol = protocolICMP6
	if !l.v6 {
		// IGMP's messages have the form of ICMP's.
		out.Dst, out.Protocol, m.Type = allIGMPRouters, protocolIGMP, typeIGMPReport
		src = netip.Addr{}
	}
	out.Payload = m.Append(nil, src, out.Dst)
	return out
}
