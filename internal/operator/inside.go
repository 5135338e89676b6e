package operator

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Inside is the message of a node to a process that runs a program as its host.
type Inside struct {
	// Addrs are the host's addresses. MTU is the size of the largest packet that all of its links
	// carry.
	Addrs []netip.Prefix `json:"addrs"`
	MTU   int            `json:"mtu"`
	// DNS contains the servers and the zone for the host's names.
	DNS control.DNSConfig `json:"dns"`
	// Entered is set if programs already run as the host. The user, network and mount namespaces
	// then come with the message. Otherwise the process creates the namespaces, and answers with
	// the descriptors of the namespaces and of the TUN device.
	Entered bool `json:"entered"`
}

// Entered is the node's answer to the descriptors.
type Entered struct {
	Error string `json:"error,omitempty"`
	// Retry is set if another program was faster. This one can then join that program's namespaces.
	Retry bool `json:"retry,omitempty"`
}

// inside describes the host.
func (n *Node) inside() (in Inside, err error) {
	in.DNS = dnsConfig(n.reloader.File())
	err = n.Node.Ask(func(*stack.Stack, clock.Time) error {
		in.Entered = n.Node.Devices.HasGuest()
		faces := n.Node.Ifaces()
		for i := range faces {
			f := &faces[i]
			for _, p := range f.Addrs() {
				if !p.Addr().IsLinkLocalUnicast() {
					in.Addrs = append(in.Addrs, p)
				}
			}
			mtu := f.MTU
			if mtu == 0 {
				mtu = stack.DefaultMTU
			}
			if f.Name != "" && (in.MTU == 0 || mtu < in.MTU) {
				in.MTU = mtu
			}
		}
		return nil
	})
	return in, err
}
