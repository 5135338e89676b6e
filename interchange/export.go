// Package interchange writes networks of .lnx files for other tools, and reads the files of other
// tools: compose files, Kubernetes manifests, containerlab topologies and mininet scripts.
//
// An export starts each node in its own container or host, with the node's .lnx file. The nodes
// still exchange UDP datagrams, so Export replaces the UDP addresses in the files by those of the
// containers. Impairments stay in the files: the nodes apply them.
package interchange

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/topology"
)

// ErrExport means that a network cannot be written in a format.
var ErrExport = errors.New("cannot export the network")

// Network is a network to export.
type Network struct {
	// Name is the name of the network.
	Name string
	// Nodes has the network's files. They are valid individually and together.
	Nodes []*lnx.Config
	// Image is the container image. The image's entry point is this program.
	Image string
	// Subnet is the IPv4 network of the containers or hosts. The gateway has its first address.
	Subnet netip.Prefix

	names map[string]string // names of the nodes in the target format
	notes diagnostic.Errors
}

// Export is a network in another format.
type Export struct {
	// Files are the files for the tool. The user passes the first one to the tool. The others are
	// placed next to it.
	Files []topology.File
	// Notes are for the user: what to know or to do.
	Notes diagnostic.Errors
}

type format struct {
	name  string
	names naming
	write func(*Network) ([]topology.File, error)
}

var formats = []format{
	{"compose", naming{}, (*Network).compose},
	{"containerlab", naming{}, (*Network).containerlab},
	{"kubernetes", naming{label: true}, (*Network).kubernetes},
	{"mininet", naming{short: true}, (*Network).mininet},
}

// Formats lists the formats of Export.
func Formats() (names []string) {
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// Export converts a network. The error wraps ErrExport.
func (n *Network) Export(to string) (*Export, error) {
	i := slices.IndexFunc(formats, func(f format) bool { return f.name == to })
	if i < 0 {
		return nil, fmt.Errorf("%w: unknown format %q%s: must be %s", ErrExport, to,
			diagnostic.DidYouMean(to, Formats()), diagnostic.OneOf(Formats()))
	}
	if n.Subnet.Bits() > 30 || !n.Subnet.Addr().Is4() || n.Subnet != n.Subnet.Masked() {
		return nil, fmt.Errorf("%w: subnet %s: must be an IPv4 network of at most 30 bits, such "+
			"as 172.30.0.0/16", ErrExport, n.Subnet)
	}
	n.name(to, formats[i].names)
	n.check()
	files, err := formats[i].write(n)
	if err != nil {
		return nil, fmt.Errorf("%w to %s: %w", ErrExport, to, err)
	}
	return &Export{files, n.notes}, nil
}

func (n *Network) note(file string, line int, format string, args ...any) {
	n.notes = append(n.notes, &diagnostic.Error{
		File: file, Line: line, Msg: fmt.Sprintf(format, args...), Note: true,
	})
}

// check adds notes about peers and files that a node in a container cannot reach.
func (n *Network) check() {
	for _, c := range n.Nodes {
		file := c.Name + ".lnx"
		for _, f := range c.Forwards {
			n.note(file, f.Pos.Line, "%s is about the container or host of the node, not this "+
				"machine: check its addresses and publish its ports", f.Kind)
		}
		for i := range c.Neighbors {
			if nb := &c.Neighbors[i]; !n.has(nb.Addr) {
				n.note(file, nb.Pos.Line, "no node of the network has %s, so its UDP address %s "+
					"is unchanged: write one that the container reaches", nb.Addr, nb.UDP)
			}
		}
		for i := range c.Interfaces {
			if f := &c.Interfaces[i]; len(f.RIP.Keys) > 0 {
				n.note(file, f.Pos.Line, "the RIP keys of %s are in the output as plain text: "+
					"keep it where only you can read it", f.Name)
			}
		}
		for i := range c.Impair {
			if l := &c.Impair[i]; strings.Contains(l.Text(), "/") {
				n.note(file, 0, "impair %s reads a file: put it into the image", l.Iface)
			}
		}
	}
}

// has reports whether a node of the network has a virtual address.
func (n *Network) has(addr netip.Addr) bool {
	return slices.ContainsFunc(n.Nodes, func(c *lnx.Config) bool {
		return slices.ContainsFunc(c.Interfaces, func(f lnx.Interface) bool {
			return f.Has(addr)
		})
	})
}

// naming is a format's rule for names. The zero value allows letters, digits, dots, - and _.
type naming struct {
	label bool // a DNS label: lower-case letters, digits and -, beginning with a letter
	short bool // the name must be short, because interface names contain it
}

// Limits of the length of names. Kubernetes appends a number and a hash to a StatefulSet's name.
const (
	longestShort = 9
	longestLabel = 25 // for network and node together, because the label contains both names
)

func (w naming) longest() int {
	switch {
	case w.label:
		return longestLabel
	case w.short:
		return longestShort
	}
	return topology.LongestName
}

// fit turns a text into a valid name.
func (w naming) fit(text string) string {
	if w.label {
		text = strings.ToLower(text)
	}
	text = strings.Map(func(r rune) rune {
		letter := r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z'
		if letter || r == '-' || !w.label && (r == '_' || r == '.') {
			return r
		}
		return '-'
	}, text)
	text = strings.TrimLeft(text, "-_.")
	if text == "" || w.label && text[0] <= '9' {
		text = "n" + text
	}
	return strings.TrimRight(text[:min(len(text), w.longest())], "-_.")
}

// name gives each node a name that the format allows, and adds notes about changed names.
func (n *Network) name(to string, w naming) {
	n.names, n.notes = map[string]string{}, nil
	taken := map[string]bool{}
	var changed []string
	for _, c := range n.Nodes {
		name := w.fit(c.Name)
		for i := 2; taken[name]; i++ {
			suffix := fmt.Sprintf("-%d", i)
			base := w.fit(c.Name)
			name = base[:min(len(base), w.longest()-len(suffix))] + suffix
		}
		taken[name] = true
		n.names[c.Name] = name
		if name != c.Name {
			changed = append(changed, c.Name+" is "+name)
		}
	}
	if len(changed) > 0 {
		n.note(n.Name, 0, "%s allows other names: %s", to, strings.Join(changed, ", "))
	}
}

// underlay returns the UDP addresses of a node's interface: the one that the node binds, and the
// one that its neighbors send to.
type underlay func(node, iface int) (bind, reach string)

// files returns the .lnx files of the nodes on an underlay, in the order of the nodes.
func (n *Network) files(at underlay) []topology.File {
	type end struct {
		reach string
		port  uint16
	}
	ends := map[netip.Addr]end{} // keyed by virtual address
	moved := make([]lnx.Config, len(n.Nodes))
	for node, c := range n.Nodes {
		moved[node] = *c
		moved[node].Interfaces = slices.Clone(c.Interfaces)
		owner := map[uint16]string{} // a port has one address, unless interfaces share a socket
		for i := range c.Interfaces {
			f := &moved[node].Interfaces[i]
			if f.Tun != nil {
				continue
			}
			was, bind := f.UDP.String(), f.UDP.Port
			for owner[bind] != "" && owner[bind] != was {
				if bind++; bind == 0 {
					bind = topology.DefaultPort
				}
			}
			owner[bind] = was
			host, reach := at(node, i)
			f.UDP = lnx.HostPort{Host: host, Port: bind}
			for _, a := range f.Addrs() {
				ends[a.Addr()] = end{reach, bind}
			}
		}
	}
	files := make([]topology.File, len(moved))
	for node := range moved {
		c := &moved[node]
		c.Neighbors = slices.Clone(c.Neighbors)
		for i := range c.Neighbors {
			if e, ok := ends[c.Neighbors[i].Addr]; ok {
				c.Neighbors[i].UDP = lnx.HostPort{Host: e.reach, Port: e.port}
			}
		}
		about := fmt.Sprintf("# %s of the network %s, exported.\n", naming{}.fit(c.Name),
			naming{}.fit(n.Name))
		files[node] = topology.File{
			Name: n.names[c.Name], Text: append([]byte(about), c.Format()...),
		}
	}
	return files
}

// perNode gives each node the next address of the subnet after the gateway's.
func (n *Network) perNode() ([]string, error) {
	addr := n.Subnet.Addr().Next()
	var list []string
	for range n.Nodes {
		addr = addr.Next()
		if !n.Subnet.Contains(addr.Next()) { // the last address is the broadcast address
			return nil, fmt.Errorf("subnet %s: too small for %d nodes; choose a larger one",
				n.Subnet, len(n.Nodes))
		}
		list = append(list, addr.String())
	}
	return list, nil
}

var imageName = regexp.MustCompile(`^([A-Za-z0-9.-]+(:\d+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*` +
	`(:\w[\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)

// IsImage reports whether a text is a valid image reference: [HOST[:PORT]/]NAME[:TAG][@DIGEST].
func IsImage(text string) bool { return imageName.MatchString(text) }

// unspecified stands for all addresses of a container or host.
const unspecified = "0.0.0.0"

// hasTun reports whether a node opens a TUN device.
func hasTun(c *lnx.Config) bool {
	return slices.ContainsFunc(c.Interfaces, func(f lnx.Interface) bool { return f.Tun != nil })
}

// The paths in a container: the node's file, and the folder for the node's socket.
const (
	fileFolder   = "/etc/tidepool"
	socketFolder = "/run/tidepool"
)

// arguments returns the program's arguments in a node's container.
func arguments(node string) []string {
	return []string{
		"run", fileFolder + "/" + node + ".lnx", "--daemon",
		"--socket", socketFolder + "/" + node + ".sock",
	}
}
