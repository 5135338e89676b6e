package tidepool

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

// DNS configures the names that a DNS server in the virtual network serves (RFC 1035).
type DNS struct {
	// Servers are the addresses of up to three DNS servers. Dial, Listen and Resolver ask them for
	// names that neither Hosts nor Lookup has.
	Servers []netip.Addr
	// Zone is the domain of the network's hosts, in which names without a dot are looked up. Empty:
	// "internal".
	Zone string
	// Names makes the node a DNS server for the zone, on port 53 of all its addresses. The names
	// are relative to the zone. The server also answers queries for the names of addresses.
	Names map[string][]netip.Addr
}

func (d *DNS) internal(to *lnx.DNS) {
	to.Servers, to.Zone = d.Servers, strings.TrimSuffix(d.Zone, ".")
	for name, addrs := range d.Names {
		to.Names = append(to.Names, lnx.HostName{Name: name, Addrs: addrs})
	}
	slices.SortFunc(to.Names, func(a, b lnx.HostName) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// Package net makes a channel at its first lookup. If that were in a bubble of testing/synctest, a
// lookup in another bubble would crash the program.
var _ = func() error {
	_, err := (&net.Resolver{PreferGo: true, Dial: func(
		context.Context, string, string,
	) (net.Conn, error) {
		return nil, net.ErrClosed
	}}).LookupHost(context.Background(), "bubble.invalid.")
	return err
}()
