package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/link"
)

const demoPort = 9000 // TCP port of the transfer

// demoNet contains the running nodes. Without a router, b is nil.
type demoNet struct {
	a, b, c *child
	sockets string        // folder of the nodes' sockets
	routed  time.Duration // time until both ends had routes to each other
}

const (
	// routeTime is how long the demo waits until the nodes have learned the routes.
	routeTime = 15 * time.Second
	routePoll = 20 * time.Millisecond
)

// portTries is how many times the demo starts the nodes. It tries again with other UDP ports if
// another program has taken one of them before the node opens it.
const portTries = 3

// startNodes starts the nodes and waits until both ends have routes to each other.
func (d *demo) startNodes(ctx context.Context) (*demoNet, error) {
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
		if try == portTries || ctx.Err() != nil || allFree(ports) {
			return nil, err
		}
	}
}

func (d *demo) start(ctx context.Context, ports []int) (*demoNet, error) {
	n, texts := &demoNet{}, d.network(ports)
	self, err := os.Executable()
	if err != nil {
		return n, fmt.Errorf("finding this program: %w", err)
	}
	// The sockets have their own folder, because the path of a socket must be short.
	if n.sockets, err = os.MkdirTemp("", "node-demo-"); err != nil {
		return n, err
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
		*node.at, err = startChild(ctx, node.name, self, d.dir, n.sockets,
			d.runArgs(node.name))
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

// network returns the nodes' files: the line A - B - C of document 001's measurements with RIP on
// all nodes, or A and C on one link.
func (d *demo) network(ports []int) map[string]string {
	names, about, bits, routing := "ABBC", "the line A - B - C", 24, "routing rip\n"
	if d.direct {
		names, about, routing = "AC", "the link A - C", ""
	}
	if d.family == "6" {
		bits, routing = 64, strings.Replace(routing, "rip", "ripng", 1)
	}
	texts := map[string]string{}
	for i, name := range strings.Split(names, "") {
		if texts[name] == "" {
			texts[name] = fmt.Sprintf("# %s of %s\n%s", name, about, routing)
		}
		iface, peer := strings.Count(texts[name], "interface"), d.addrs()[i^1]
		texts[name] += fmt.Sprintf("interface if%d %s/%d 127.0.0.1:%d\n"+
			"neighbor %s at 127.0.0.1:%d via if%d\n", iface, d.addrs()[i], bits, ports[i],
			peer, ports[i^1], iface)
		if routing == "routing rip\n" {
			texts[name] += "rip advertise-to " + peer + "\n"
		}
	}
	return texts
}

// addrs returns the addresses of A, of B toward A, of B toward C, and of C.
func (d *demo) addrs() []string {
	list := []string{"10.0.0.1", "10.0.0.2", "10.1.0.1", "10.1.0.2"}
	if d.family == "6" {
		list = []string{"2001:db8::1", "2001:db8::2", "2001:db8:1::1", "2001:db8:1::2"}
	}
	if d.direct {
		return list[:2]
	}
	return list
}

// demoPorts is the number of UDP ports that the nodes need: one for each interface.
const demoPorts = 4

func allFree(ports []int) bool {
	for _, port := range ports {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			return false
		}
		_ = c.Close() // nothing was sent on the socket
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

// awaitRoutes waits until each end has a route to the other.
func (d *demo) awaitRoutes(ctx context.Context, n *demoNet) error {
	ctx, cancel := context.WithTimeoutCause(ctx, routeTime,
		fmt.Errorf("RIP found no route between A and C within %v", routeTime))
	defer cancel()
	began := time.Now()
	addrs := d.addrs()
	for addr, from := range map[string]*child{addrs[0]: n.c, addrs[len(addrs)-1]: n.a} {
		if err := from.awaitRoute(ctx, netip.MustParseAddr(addr)); err != nil {
			return err
		}
	}
	n.routed = time.Since(began)
	var names []string
	for _, c := range n.each() {
		names = append(names, fmt.Sprintf("%s (pid %d)", c.name, c.process.Process.Pid))
	}
	d.say("nodes %s run; their routes converged after %.2f s", strings.Join(names, " - "),
		n.routed.Seconds())
	return nil
}

// routerEnded returns a channel that is closed when the router exits; nil without a router.
func (n *demoNet) routerEnded() <-chan struct{} {
	if n.b == nil {
		return nil
	}
	return n.b.ended
}

// leaveTime is how long the demo waits until the nodes have closed their files.
const leaveTime = 20 * time.Second

// leave stops the nodes and waits until they have closed their files.
func (n *demoNet) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	for _, c := range n.each() {
		_ = c.in.Close() // the process may have ended already
	}
	for _, c := range n.each() {
		if err := c.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// end stops the nodes that still run and waits for their processes.
func (n *demoNet) end() {
	if n == nil {
		return
	}
	for _, c := range n.each() {
		c.end()
	}
	_ = os.RemoveAll(n.sockets) // contains at most sockets
}
