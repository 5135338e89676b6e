package main

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/netctl"
	"github.com/tidepool-net/tidepool/internal/operator"
)

// machineError contains the reasons why this machine cannot run valid files now. The machine may be
// able to run them later, so the exit status is 1.
type machineError struct{ lnx.Errors }

// Unwrap returns the errors, for errors.As.
func (e machineError) Unwrap() error { return e.Errors }

// checkHere returns the reasons why this machine cannot run some files. If a node of another
// network uses a port, the error names the node.
func checkHere(ctx context.Context, s *netctl.State, configs []*lnx.Config) lnx.Errors {
	var all lnx.Errors
	for _, c := range configs {
		all = append(all, operator.CheckHere(ctx, c)...)
	}
	if all.Err() == nil {
		return nil
	}
	for _, told := range heldBy(s.Holders(ctx), configs, "") {
		for i, e := range all {
			if told.File == e.File && told.Line == e.Line && told.Col == e.Col {
				all[i] = told
			}
		}
	}
	return all
}

// heldBy returns errors for ports that a node of another network uses.
func heldBy(held map[string]netctl.Holder, configs []*lnx.Config, own string) (list lnx.Errors) {
	for _, c := range configs {
		for _, p := range portsOf(c) {
			h, ok := held[p.port]
			if !ok || h.Network == own {
				continue
			}
			msg := fmt.Sprintf("%s cannot use %s: node %s of network %s uses it", p.who, p.at,
				h.Node, h.Network)
			want := fmt.Sprintf("a free port, or `node net down %s` first", h.Network)
			if told := p.tell(msg, want); told != nil {
				list = append(list, told)
			}
		}
	}
	return list
}

// wantedPort is a port of this machine that a file uses.
type wantedPort struct {
	port string // port in the form of netctl.Holders
	who  string
	at   string // address as written in the file
	tell func(msg, want string) *lnx.Error
}

func portsOf(c *lnx.Config) (list []wantedPort) {
	for i := range c.Interfaces {
		f := &c.Interfaces[i]
		port := f.UDP.String()
		if at, ok := f.UDP.AddrPort(); ok {
			port = at.String()
		}
		list = append(list, wantedPort{
			port: "udp " + port, who: "interface " + f.Name, at: f.UDP.String(),
			tell: func(msg, want string) *lnx.Error { return c.AtUDP(f, msg, want) },
		})
	}
	for i := range c.Forwards {
		d := &c.Forwards[i]
		if d.Kind != lnx.Publish {
			continue
		}
		network := "tcp"
		if d.UDP {
			network = "udp"
		}
		at := netip.AddrPortFrom(d.On(), d.Port).String()
		list = append(list, wantedPort{
			port: network + " " + at, who: "publish", at: at,
			tell: func(msg, want string) *lnx.Error { return c.AtForward(d, msg, want) },
		})
	}
	return list
}
