package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/netns"
)

// enterHost runs a program as the host of a node: in the namespaces that its programs have, or in
// new ones.
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
			_ = f.Close() // it was only held open
		}
	}()
	if in.Entered {
		p, err = netns.Join(spaces, program)
		return p, false, err
	}
	cfg := insideConfig(&in, hosts)
	if len(cfg.Kernel) == 0 {
		return nil, false, fmt.Errorf("%s has no address that programs can have: it needs an IPv4 "+
			"address, or an IPv6 address and links with an MTU of at least %d", name, minMTU6)
	}
	if p, err = netns.Start(cfg, program); err != nil {
		return nil, false, err
	}
	done, err := hand(c, p)
	if err == nil && done.Error != "" {
		retry, err = done.Retry, errors.New(done.Error)
	}
	_ = p.TUN().Close() // the node has it now, or nothing
	if err != nil {
		p.Abandon()
		return nil, retry, fmt.Errorf("enter %s: %w", name, err)
	}
	return p, false, p.Run()
}

// hand gives the node the device and the namespaces.
func hand(c *net.UnixConn, p *netns.Process) (done operator.Entered, err error) {
	if err = p.Send(c); err == nil {
		_, err = receive(c, &done)
	}
	return done, err
}

// maxAnswer limits a node's answer, in bytes.
const maxAnswer = 64 << 10

// receive reads one answer of the node, with the files that come with it.
func receive(c *net.UnixConn, into any) (list []*os.File, err error) {
	text := make([]byte, maxAnswer)
	n, fds, err := netns.Receive(c, text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrGone, err)
	}
	for _, fd := range fds {
		list = append(list, os.NewFile(uintptr(fd), "namespace"))
	}
	return list, json.Unmarshal(text[:n], into)
}
