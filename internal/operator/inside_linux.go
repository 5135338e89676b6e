package operator

import (
	"encoding/json"
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/node"
)

// A process sends insideFDs descriptors: the TUN device, and the user, network and mount
// namespaces. Sockets in the network namespace may follow, up to mostFDs: a netlink socket that
// lists the programs' sockets, and two sockets for DNS.
const (
	insideFDs = 4
	mostFDs   = 7
)

// Inside serves a process that runs a program as this host.
func (n *Node) Inside(conn *net.UnixConn) {
	n.entering.Lock()
	defer n.entering.Unlock()
	in, err := n.inside()
	if err != nil {
		return // the node is closed
	}
	var rights []byte
	if in.Entered {
		var fds []int
		for _, f := range n.namespaces[:insideFDs-1] {
			fds = append(fds, int(f.Fd()))
		}
		rights = unix.UnixRights(fds...)
	}
	text, err := json.Marshal(in)
	if err != nil {
		return
	}
	if _, _, err := conn.WriteMsgUnix(text, rights, nil); err != nil || in.Entered {
		return
	}
	buf, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4*mostFDs))
	k, oobn, _, _, err := conn.ReadMsgUnix(buf, oob)
	if err != nil || k == 0 {
		return // the process failed to create its namespaces
	}
	answer := Entered{}
	if err := n.enter(in, oob[:oobn]); err != nil {
		answer = Entered{Error: err.Error(), Retry: errors.Is(err, node.ErrGuest)}
	}
	text, _ = json.Marshal(answer) // always encodes
	_, _ = conn.Write(text)        // the process may have ended
}

// enter attaches the kernel of the namespaces to the node.
func (n *Node) enter(in Inside, oob []byte) error {
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(list) != 1 {
		return errors.New("the descriptors are missing")
	}
	fds, err := unix.ParseUnixRights(&list[0])
	if err != nil || len(fds) < insideFDs || len(fds) > mostFDs {
		return errors.New("the descriptors are incomplete")
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	var spaces []*os.File
	for _, fd := range fds[1:] {
		spaces = append(spaces, os.NewFile(uintptr(fd), "namespace"))
	}
	d, err := link.AdoptTUN(link.TUNConfig{
		Device: insideDevice, Interface: link.Interface{Name: insideDevice, MTU: in.MTU},
	}, fds[0])
	if err != nil {
		_ = unix.Close(fds[0])
	} else if err = n.Node.Devices.Guest(d); err != nil {
		_ = d.Close() // report the first error
	}
	if err != nil {
		closeAll(spaces)
		return err
	}
	n.leaveNamespaces()
	n.namespaces = spaces
	for _, f := range spaces[insideFDs-1:] {
		n.use(f)
	}
	return nil
}

// use serves DNS at a socket in the programs' network namespace, or lists their sockets with it.
func (n *Node) use(f *os.File) {
	if c, err := net.FilePacketConn(f); err == nil {
		n.dns = append(n.dns, c)
		go n.Services.DNS.ServePackets(c)
	} else if l, err := net.FileListener(f); err == nil {
		n.dns = append(n.dns, l)
		go n.Services.DNS.ServeListener(l)
	} else {
		n.Requests.programs.enter(diag{f}.sockets)
	}
}

// insideDevice names the device in errors.
const insideDevice = "programs"
