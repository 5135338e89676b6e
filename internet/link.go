package internet

import (
	"cmp"
	"errors"
	"sync"

	"github.com/tidepool-net/tidepool"
)

// Link is the link between two hosts or routers.
type Link struct {
	world *World
	ends  []linkEnd

	mu          sync.Mutex
	cut, parted bool
	// impaired, indexed by direction, replaces the impairments in the network's file.
	impaired map[tidepool.Way]tidepool.Impairments
}

type linkEnd struct {
	host    *Host
	iface   string
	packets *packets
}

func (l *Link) String() string { return l.ends[0].host.name + " - " + l.ends[1].host.name }

func (l *Link) joins(a, b *Host) bool {
	return l.ends[0].host == a && l.ends[1].host == b || l.ends[0].host == b && l.ends[1].host == a
}

// Cut disconnects the link, like an unplugged cable: both ends see that it is down, and packets in
// flight are lost. For a link that appears to be up but drops all packets, use Impair with `loss
// 100%`.
func (l *Link) Cut() {
	l.world.happens("link %v is cut", l)
	l.set(&l.cut, true)
}

// Restore connects a link that was cut.
func (l *Link) Restore() {
	l.world.happens("link %v is restored", l)
	l.set(&l.cut, false)
}

func (l *Link) partition(parted bool) { l.set(&l.parted, parted) }

func (l *Link) set(what *bool, down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*what = down
	for _, e := range l.ends {
		l.report(l.apply(e))
	}
}

// Impair replaces the link's impairments, in both directions. The words are the same as in a .net
// file.
func (l *Link) Impair(words string) {
	l.world.t.Helper()
	l.impair(tidepool.Out, words)
}

// lose makes both ends also lose the packets that they receive. It does not change the impairments
// of Impair and of the files.
func (l *Link) lose(words string) { l.impair(tidepool.In, words) }

func (l *Link) impair(way tidepool.Way, words string) {
	l.world.t.Helper()
	l.world.happens("link %v, %s: %s", l, way, cmp.Or(words, "off"))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.impaired == nil {
		l.impaired = map[tidepool.Way]tidepool.Impairments{}
	}
	l.impaired[way] = tidepool.Impairments{Words: words}
	for _, e := range l.ends {
		if err := l.apply(e); err != nil {
			l.report(err)
			return // the other end would report the same error
		}
	}
}

// renew applies the state of the link to a host that was restarted or has resumed.
func (l *Link) renew(h *Host) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.ends {
		if e.host == h {
			l.report(l.apply(e))
		}
	}
}

// apply sets the state of one end. If the end's host is down or paused, renew does that later.
func (l *Link) apply(e linkEnd) error {
	e.host.mu.Lock()
	defer e.host.mu.Unlock()
	if e.host.down || e.host.paused {
		return nil
	}
	err := e.host.node.SetUp(e.iface, !l.cut && !l.parted)
	for _, way := range []tidepool.Way{tidepool.Out, tidepool.In} {
		if i, ok := l.impaired[way]; ok {
			err = errors.Join(err, e.host.node.Impair(e.iface, way, i))
		}
	}
	return err
}

func (l *Link) report(err error) {
	if err != nil {
		l.world.t.Helper()
		l.world.t.Errorf("internet: link %v: %v", l, err)
	}
}
