package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/netns"
)

// enterHost runs a program that uses a node as its host. The program joins the namespaces of the
// node's other programs, or creates them if it is the first.
func enterHost(socket, name, hosts string, program netns.Program) (*netns.Process, error) {
	for {
		p, retry, err := tryHost(socket, name, hosts, program)
		if !retry {
			return p, err
		}
	}
}

func tryHost(
	socket, name, hosts string, program netns.Program,
) (p *netns.Process, retry bool, err error) {
	c, err := api.Enter(socket, name)
	if err != nil {
		return nil, false, err
	}
	defer c.Close()
	var in operator.Inside
	spaces, err := receive(c, &in)
	if err != nil {
		return nil, false, fmt.Errorf("enter %s: %w", name, err)
	}
	defer func() {
		for _, f := range spaces {
			_ = f.Close() // the process has joined the namespace
		}
	}()
	if in.Entered {
		p, err = netns.Join(spaces, program)
		return p, false, err
	}
	host := netns.Host{
		Addrs: in.Addrs, MTU: in.MTU, Names: hosts, Servers: in.DNS.Servers,
		Zone: cmp.Or(in.DNS.Zone, control.DefaultZone), ServesDNS: len(in.DNS.Names) > 0,
	}
	cfg := host.Config()
	if len(cfg.Kernel) == 0 {
		return nil, false, fmt.Errorf("%s has no address that programs can use: it needs an IPv4 "+
			"address, or an IPv6 address and links with an MTU of at least %d", name, netns.MinMTU6)
	}
	if p, err = netns.Start(cfg, program); err != nil {
		return nil, false, err
	}
	var done operator.Entered
	if err = p.Send(c); err == nil { // sends the device and the namespaces
		_, err = receive(c, &done)
	}
	if err == nil && done.Error != "" {
		retry, err = done.Retry, errors.New(done.Error)
	}
	_ = p.TUN().Close() // the node has received it, or has failed
	if err != nil {
		p.Abandon()
		return nil, retry, fmt.Errorf("enter %s: %w", name, err)
	}
	return p, false, p.Run()
}

// receive reads one answer of the node and the file descriptors that come with it.
func receive(c *net.UnixConn, into any) (list []*os.File, err error) {
	fds, err := netns.Receive(c, into)
	for _, fd := range fds {
		list = append(list, os.NewFile(uintptr(fd), "namespace"))
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", api.ErrGone, err)
	}
	return list, err
}
