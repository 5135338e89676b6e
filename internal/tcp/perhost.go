package tcp

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// peers is the information about remote hosts that all connections share.
type peers struct {
	mtus  perHost[int]      // MTUs of paths that are narrower than their first link
	plain perHost[struct{}] // peers without TCP options
}

// perHost stores a value for each of the last maxHosts peers, until it expires.
type perHost[V any] struct {
	byHost map[netip.Addr]remembered[V]
	order  []netip.Addr // keys of byHost, oldest first
}

type remembered[V any] struct {
	value V
	until clock.Time
}

// maxHosts bounds the table. A new entry replaces the oldest.
const maxHosts = 1024

// find returns a host's value and when it expires; clock.Never if none is stored.
func (m *perHost[V]) find(now clock.Time, host netip.Addr) (value V, until clock.Time) {
	k, ok := m.byHost[host]
	if !ok || k.until.Due(now) {
		return value, clock.Never
	}
	return k.value, k.until
}

func (m *perHost[V]) learn(now clock.Time, host netip.Addr, value V, age time.Duration) {
	if m.byHost == nil {
		m.byHost = map[netip.Addr]remembered[V]{}
	}
	if _, ok := m.byHost[host]; !ok {
		if len(m.order) == maxHosts {
			delete(m.byHost, m.order[0])
			m.order = m.order[1:]
		}
		m.order = append(m.order, host)
	}
	m.byHost[host] = remembered[V]{value, now.Add(age)}
}

func (m *perHost[V]) forget(host netip.Addr) {
	if k, ok := m.byHost[host]; ok {
		k.until = 1 // expired; the entry keeps its place in order
		m.byHost[host] = k
	}
}
