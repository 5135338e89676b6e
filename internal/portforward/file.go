package portforward

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// OpenFile opens the port forwards of a file, and stops at the first error.
func (s *Set) OpenFile(c *lnx.Config) error {
	for i := range c.Forwards {
		if err := s.openOf(c, &c.Forwards[i]); err != nil {
			return err
		}
	}
	return nil
}

// openOf opens one port forward of a file. Its error has the position in the file.
func (s *Set) openOf(c *lnx.Config, d *lnx.Forward) error {
	_, err := s.Do(context.Background(), requestOf(d))
	if err == nil {
		return nil
	}
	if at := c.AtForward(d, err.Error(), ""); at != nil {
		return control.Also(at, err)
	}
	return err
}

// requestOf returns the request that opens a file's port forward.
func requestOf(d *lnx.Forward) any {
	switch d.Kind {
	case lnx.Expose:
		return control.Expose{Port: d.Port, To: d.To.String(), UDP: d.UDP}
	case lnx.Splice:
		to, _ := netip.ParseAddr(d.To.Host) // cannot fail: lnx has checked the address
		return control.Splice{Addr: d.Addr, To: to}
	case lnx.Socks:
		return control.Socks{Port: d.Port, On: d.On()}
	}
	to, _ := d.To.AddrPort()
	return control.Publish{Port: d.Port, On: d.On(), To: to, UDP: d.UDP}
}

// CheckHere returns an error for each port of this machine that a file needs and that is not
// available.
func CheckHere(ctx context.Context, c *lnx.Config) (list lnx.Errors) {
	var config net.ListenConfig
	for i := range c.Forwards {
		d := &c.Forwards[i]
		if d.Kind != lnx.Publish && d.Kind != lnx.Socks {
			continue
		}
		at := netip.AddrPortFrom(d.On(), d.Port).String()
		var open interface{ Close() error }
		var err error
		if d.UDP {
			open, err = config.ListenPacket(ctx, "udp", at)
		} else {
			open, err = config.Listen(ctx, "tcp", at)
		}
		if err == nil {
			_ = open.Close() // the port was opened only to check that it is free
			continue
		}
		if e := c.AtForward(d, d.Kind+" "+at+": "+machineError(err).Error(), ""); e != nil {
			list = append(list, e)
		}
	}
	return list
}

// Change is a difference between two versions of a node's file. A reload makes all changes or none.
type Change struct {
	Text  string
	Do    func() error // may be called again
	Undo  func()       // undoes the change; nil: nothing to undo
	Frees bool         // Do frees a port of this machine
}

// Changes lists the changes between two files. Port forwards are closed before others are opened,
// which may need their ports.
func (s *Set) Changes(was, now *lnx.Config) (list []Change) {
	has := func(c *lnx.Config, d *lnx.Forward) bool {
		return slices.ContainsFunc(c.Forwards, func(o lnx.Forward) bool {
			return o.String() == d.String()
		})
	}
	for i := range was.Forwards {
		d := &was.Forwards[i]
		if has(now, d) {
			continue
		}
		list = append(list, Change{
			Text: "removed: " + d.String(),
			Do: func() error {
				if open := s.at(d); open != nil {
					_ = open.Close(false) // connections stay open
				}
				return nil
			},
			Undo:  func() { _ = s.openOf(was, d) }, // the forward was open before
			Frees: true,
		})
	}
	for i := range now.Forwards {
		d := &now.Forwards[i]
		if has(was, d) {
			continue
		}
		list = append(list, Change{
			Text: d.String(),
			Do:   func() error { return s.openOf(now, d) },
			Undo: func() {
				if open := s.at(d); open != nil {
					_ = open.Close(false)
				}
			},
		})
	}
	return list
}

// at returns the open port forward that listens where the file's does, or nil.
func (s *Set) at(d *lnx.Forward) *Forward {
	from := fmt.Sprint(d.Port)
	switch d.Kind {
	case lnx.Publish, lnx.Socks:
		from = netip.AddrPortFrom(d.On(), d.Port).String()
	case lnx.Splice:
		from = d.Addr.String()
	}
	for _, open := range s.forwards() {
		is := open.State()
		if !is.Closing && string(is.Kind) == d.Kind && is.From == from &&
			(is.Network == "udp") == d.UDP {
			return open
		}
	}
	return nil
}
