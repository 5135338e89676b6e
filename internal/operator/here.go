package operator

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// withPosition adds the position in the file to an error about an interface's UDP address.
func withPosition(c *lnx.Config, err error) error {
	bind, ok := errors.AsType[*link.BindError](err)
	if !ok {
		return err
	}
	f, _ := c.Interface(bind.Interfaces[0])
	at := c.AtUDP(f, "interface "+f.Name+" cannot have "+bind.UDP+": "+bind.Reason(), bind.Advice())
	if at == nil {
		return err
	}
	return control.Also(at, err)
}

// lookupTimeout limits the lookup of a host name.
const lookupTimeout = 3 * time.Second

// checkHere returns the errors of running the file's node on this machine: UDP addresses that are
// in use or not local, neighbors without a route, and unknown host names. It sends only DNS
// queries.
func checkHere(ctx context.Context, c *lnx.Config) (list lnx.Errors) {
	bound := map[lnx.HostPort]bool{} // a shared socket counts once
	for i := range c.Interfaces {
		f := &c.Interfaces[i]
		if f.Tun != nil || bound[f.UDP] {
			continue
		}
		bound[f.UDP] = true
		d, err := link.Open(link.Config{
			Host: f.UDP.Host, Port: f.UDP.Port, Offload: link.OffloadPlain,
			Interfaces: []link.Interface{{Name: f.Name}},
		})
		if err == nil {
			_ = d.Close() // the device is opened only to test whether the address is free
			continue
		}
		at, ok := errors.AsType[*lnx.Error](withPosition(c, err))
		if !ok {
			at = &lnx.Error{File: c.Name, Msg: err.Error()}
		}
		list = append(list, at)
	}
	for i := range c.Neighbors {
		nb := &c.Neighbors[i]
		if msg, want := unreachable(ctx, nb.UDP); msg != "" {
			list = append(list, c.AtNeighbor(nb, "neighbor "+nb.Addr.String()+" via "+nb.Iface+
				" cannot be reached at "+nb.UDP.String()+": "+msg, want))
		}
	}
	return list
}

// unreachable returns why a UDP address cannot be reached, or "".
func unreachable(ctx context.Context, to lnx.HostPort) (msg, want string) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "udp", to.String())
	if err == nil {
		_ = conn.Close() // nothing was sent
		return "", ""
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.Err, "a host name that the resolver knows, or an address"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error(), "an address that `ip route get` finds a way to"
	}
	return err.Error(), ""
}
