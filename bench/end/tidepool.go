//go:build linux

package end

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// ours is a node of the project, configured by an .lnx file.
type ours struct {
	spec *Spec
	node *node.Node
	ask  *operator.Requests
}

// Describe returns the .lnx file of a node with the given sides.
func Describe(spec *Spec) string {
	var b strings.Builder
	for i, s := range spec.Sides {
		bits, all := 24, "0.0.0.0/0"
		if s.Addr.Is6() {
			bits, all = 64, "::/0"
		}
		fmt.Fprintf(&b, "interface if%d %v/%d %v\n", i, s.Addr, bits, s.UDP)
		fmt.Fprintf(&b, "neighbor %v at %v via if%d\n", s.Neighbor, s.Peer, i)
		if len(spec.Sides) == 1 && spec.Far.IsValid() && spec.Far != s.Neighbor {
			fmt.Fprintf(&b, "route %s via %v\n", all, s.Neighbor)
		}
	}
	mode := "static"
	if len(spec.Sides) > 1 {
		mode = "rip" // without this, the node would not be a router
	}
	fmt.Fprintf(&b, "routing %s\n", mode)
	return b.String()
}

func open(spec *Spec) (*ours, error) {
	c, err := lnx.Parse("bench.lnx", []byte(Describe(spec)))
	if err != nil {
		return nil, err
	}
	for i := range c.Interfaces {
		c.Interfaces[i].MTU = spec.MTU
	}
	n, err := operator.OpenNode(node.Config{
		Seed: spec.Seed,
		Tune: func(t *tcp.Config) {
			if spec.Congestion != "" {
				t.Recovery.Congestion = spec.Congestion
			}
		},
	}, c)
	if err != nil {
		return nil, err
	}
	return &ours{spec, n, operator.NewRequests(n)}, nil
}

func openTidepool(spec *Spec) (host, error) { return open(spec) }

// openRouter opens a router that drops the given share of the packets it forwards.
func openRouter(spec *Spec) (host, error) {
	o, err := open(spec)
	if err != nil || spec.Loss == 0 {
		return o, err
	}
	_, err = o.ask.Do(context.Background(), control.SetLoss{Percent: spec.Loss * 100})
	return o, err
}

func (o *ours) Listen(port uint16) (net.Listener, error) {
	return o.node.TCP.Listen(netip.AddrPortFrom(o.spec.Sides[0].Addr, port), listenBacklog)
}

// listenBacklog is the limit of our accept queue.
const listenBacklog = 1024

func (o *ours) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	return o.node.TCP.Dial(ctx, netip.AddrPortFrom(o.spec.Far, port))
}

func (o *ours) Account(u *Usage) {
	answer, err := o.ask.Do(context.Background(), control.Interfaces{})
	if err != nil {
		return // the node is closed
	}
	for _, i := range answer.([]control.Interface) {
		u.Packets += i.Out.Packets
		for _, d := range i.Out.Drops {
			u.Drops += d.Packets
		}
	}
}

func (o *ours) Describe(c net.Conn, p *Path) {
	i, err := c.(*node.Conn).Info()
	if err != nil {
		return
	}
	fill(&i, p)
}

func fill(i *tcp.Info, p *Path) {
	p.RTT = i.RTT
	p.MSS = i.SndMSS
	p.Retransmits = i.TotalRetrans
	p.RTOs = i.TotalRTO
	p.TailProbes = i.TailProbes
	p.LostRetransmits = i.LostRetransmits
	p.Spurious = i.Undone + i.DSACKDups
}

func (o *ours) Close() error { return o.node.Close() }
