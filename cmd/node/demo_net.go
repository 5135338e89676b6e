package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/link"
)

// The addresses of the two ends, and the port of the transfer.
const (
	demoAddrA = "10.0.0.1"
	demoAddrC = "10.1.0.2"
	demoPort  = 9000
)

// demoNet is the running nodes. Without a router b is nil.
type demoNet struct {
	a, b, c *child
	addrC   string
	routed  time.Duration // from the last node's start until both ends had their routes
}

// raiseTries is how often the demo tries other UDP ports, if another program took one between the
// search and the node's start.
const raiseTries = 3

// raise starts the nodes and waits until the ends have routes to each other.
func (d *demo) raise(ctx context.Context) (*demoNet, error) {
	for try := 1; ; try++ {
		ports, err := link.FreePorts(demoPorts)
		if err != nil {
			return nil, fmt.Errorf("finding free UDP ports: %w", err)
		}
		n, err := d.start(ctx, ports)
		if err == nil {
			if err = d.awaitRoutes(ctx, n); err == nil {
				return n, nil
			}
		}
		n.end()
		if try == raiseTries || ctx.Err() != nil || allFree(ports) {
			return nil, err
		}
	}
}

func (d *demo) start(ctx context.Context, ports []int) (*demoNet, error) {
	n := &demoNet{addrC: demoAddrC}
	texts := lineOfThree(ports)
	if d.direct {
		n.addrC = "10.0.0.2"
		texts = lineOfTwo(ports)
	}
	self, err := os.Executable()
	if err != nil {
		return n, fmt.Errorf("finding this program: %w", err)
	}
	for _, node := range []struct {
		name string
		at   **child
	}{{"A", &n.a}, {"B", &n.b}, {"C", &n.c}} {
		text, ok := texts[node.name]
		if !ok {
			continue
		}
		if err := files.Overwrite(d.path(node.name+".lnx"), []byte(text), 0o644); err != nil {
			return n, err
		}
		*node.at, err = startChild(ctx, node.name, self, d.dir, d.runArgs(node.name))
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// runArgs returns the arguments of a node's process. The nodes run in the demo's directory, so file
// names need no path.
func (d *demo) runArgs(node string) []string {
	args := []string{"run", node + ".lnx", "--seed", strconv.FormatUint(d.seed, 10)}
	if d.bare {
		return args
	}
	args = append(args, "--pcap", node+".pcapng", "--pcap-snaplen", strconv.Itoa(d.snaplen))
	if node == "C" {
		args = append(args, "--probe", demoProbe)
	}
	return args
}

// lineOfThree is the network of document 001's measurements: A - B - C, all running RIP.
func lineOfThree(p []int) map[string]string {
	return map[string]string{
		"A": fmt.Sprintf(`# A, the receiver: one end of the line A - B - C
interface if0 10.0.0.1/24 127.0.0.1:%d
neighbor 10.0.0.2 at 127.0.0.1:%d via if0
rip advertise-to 10.0.0.2
routing rip
`, p[0], p[1]),
		"B": fmt.Sprintf(`# B, the router in the middle of the line A - B - C
interface if0 10.0.0.2/24 127.0.0.1:%d
interface if1 10.1.0.1/24 127.0.0.1:%d
neighbor 10.0.0.1 at 127.0.0.1:%d via if0
neighbor 10.1.0.2 at 127.0.0.1:%d via if1
rip advertise-to 10.0.0.1
rip advertise-to 10.1.0.2
routing rip
`, p[1], p[2], p[0], p[3]),
		"C": fmt.Sprintf(`# C, the sender: the other end of the line A - B - C
interface if0 10.1.0.2/24 127.0.0.1:%d
neighbor 10.1.0.1 at 127.0.0.1:%d via if0
rip advertise-to 10.1.0.1
routing rip
`, p[3], p[2]),
	}
}

// lineOfTwo is two hosts on one link.
func lineOfTwo(p []int) map[string]string {
	return map[string]string{
		"A": fmt.Sprintf(`# A, the receiver: one end of the link A - C
interface if0 10.0.0.1/24 127.0.0.1:%d
neighbor 10.0.0.2 at 127.0.0.1:%d via if0
`, p[0], p[1]),
		"C": fmt.Sprintf(`# C, the sender: the other end of the link A - C
interface if0 10.0.0.2/24 127.0.0.1:%d
neighbor 10.0.0.1 at 127.0.0.1:%d via if0
`, p[1], p[0]),
	}
}

// demoPorts is the number of UDP ports that the nodes need: one for each interface.
const demoPorts = 4

// allFree reports whether all ports are free.
func allFree(ports []int) bool {
	for _, port := range ports {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			return false
		}
		_ = c.Close() // nothing was sent
	}
	return true
}

func (n *demoNet) each() []*child {
	var nodes []*child
	for _, c := range []*child{n.a, n.b, n.c} {
		if c != nil {
			nodes = append(nodes, c)
		}
	}
	return nodes
}

// routerEnded is closed when the router's process ends, and never without a router.
func (n *demoNet) routerEnded() <-chan struct{} {
	if n.b == nil {
		return nil
	}
	return n.b.ended
}

// leaveTime is how long the nodes may take to close their files.
const leaveTime = 20 * time.Second

// leave stops the nodes and waits until they have closed their files.
func (n *demoNet) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	for _, c := range n.each() {
		c.hangUp()
	}
	for _, c := range n.each() {
		if err := c.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// end stops the nodes that still run and waits for them.
func (n *demoNet) end() {
	if n == nil {
		return
	}
	for _, c := range n.each() {
		c.end()
	}
}
