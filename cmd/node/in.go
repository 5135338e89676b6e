package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/netctl"
	"github.com/tidepool-net/tidepool/netns"
)

func inCommand() *cobra.Command {
	o := netOptions{}
	c := &cobra.Command{
		Use:   "in NETWORK:HOST -- COMMAND [ARG...]",
		Short: "run a program as a host of a network",
		Long: "Run a program as a host of a network, as any user and without root. The program\n" +
			"has the host's addresses and can look up the names of the network's hosts.\n" +
			"NETWORK is a running network, a folder, or a .net file. If the network is not\n" +
			"running, the command starts it, in one process. Without a COMMAND the program is\n" +
			"a shell.\n" +
			"\n" +
			"Programs on the same host share its ports. A program that listens on a port that\n" +
			"the node itself uses receives nothing, because the node takes the packets.\n" +
			"\n" +
			"The exit status is the program's: 128 plus the signal number if a signal killed\n" +
			"it, 126 or 127 if it could not be executed. This command needs Linux.",
		Example: "  node in nets/ring:A -- ping -c 3 b\n" +
			"  node in ring:B -- python3 -m http.server 80\n" +
			"  node in ring:A -- curl -s http://b/",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return misuse(c, errors.New("NETWORK:HOST is missing"))
			}
			at := strings.LastIndexByte(args[0], ':')
			if at <= 0 || at == len(args[0])-1 {
				return misuse(c, fmt.Errorf("%q: must be NETWORK:HOST, such as nets/ring:A",
					args[0]))
			}
			host, program, err := cutAtDash(c, args)
			switch {
			case err != nil:
				return err
			case len(host) != 1:
				return misuse(c, errNoDash)
			}
			return o.in(c, args[0][:at], args[0][at+1:], program)
		},
	}
	c.SetFlagErrorFunc(dashError)
	o.stateFlag(c)
	return c
}

// in runs a program that uses a node of the network as its host. If in has started the network and
// the program cannot start, in stops the network again.
func (o *netOptions) in(c *cobra.Command, network, host string, program []string) error {
	n, started, err := o.running(c, network, host)
	if err != nil {
		return err
	}
	p, err := enter(n, host, program)
	if err == nil {
		return p.Wait(netns.Left{})
	}
	if started {
		s, failed := o.open()
		if failed == nil {
			_, failed = s.Down(context.WithoutCancel(c.Context()), n.Name())
		}
		if failed != nil {
			return errors.Join(err, failed)
		}
		_, _ = fmt.Fprintf(c.ErrOrStderr(), "%s is down again\n", n.Name())
	}
	return err
}

func enter(n *netctl.Network, host string, program []string) (*netns.Process, error) {
	members := n.Members()
	var names []string
	for _, m := range members {
		names = append(names, m.Name)
	}
	i, err := findHost(n.Name(), names, host)
	switch {
	case err != nil:
		return nil, err
	case members[i].Host != "":
		return nil, fmt.Errorf("%s runs on %s: run `node in` there", members[i].Name,
			members[i].Host)
	}
	hosts, err := hostsFile(n.Source())
	if err != nil {
		return nil, err
	}
	p, err := enterHost(n.Socket(members[i].Name), members[i].Name, hosts,
		netns.NewProgram(program))
	if errors.Is(err, api.ErrGone) {
		err = fmt.Errorf("%w: `%s net up %s` starts it again", err, programName(), n.Source())
	}
	return p, err
}

func findHost(network string, names []string, host string) (int, error) {
	i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, host) })
	if i < 0 {
		return i, &usageError{fmt.Errorf("%s has no host %q: its hosts are %s", network, host,
			strings.Join(names, ", "))}
	}
	return i, nil
}

// running returns a network. It starts the network if that is not running and its files contain the
// host.
func (o *netOptions) running(
	c *cobra.Command, network, host string,
) (n *netctl.Network, started bool, err error) {
	_, n, err = o.network([]string{network})
	if err == nil {
		return n, false, sameSource(n, network)
	}
	if !errors.Is(err, netctl.ErrNoNetwork) {
		return nil, false, err
	}
	if _, e := os.Stat(network); e != nil {
		if strings.ContainsRune(network, filepath.Separator) {
			err = noFile(network, e, "the folder or the file of a network")
			return nil, false, &usageError{err}
		}
		return nil, false, err
	}
	f, err := readNetwork(network)
	if err != nil {
		return nil, false, err
	}
	var names []string
	for _, config := range f.configs() {
		names = append(names, config.Name)
	}
	if _, err := findHost(network, names, host); err != nil {
		return nil, false, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, false, err
	}
	up := exec.CommandContext(context.WithoutCancel(c.Context()), self, "net", "up", network,
		"--one-process", "--state", o.state)
	up.Args[0] = os.Args[0] // hints show the name that the user typed
	up.Stderr = c.ErrOrStderr()
	up.Stdout = c.ErrOrStderr()
	if err := up.Run(); err != nil {
		return nil, false, printedError{fmt.Errorf("start %s: %w", network, err)}
	}
	_, n, err = o.network([]string{network})
	return n, true, err
}

// sameSource returns an error if network is a path and n was started from other files.
func sameSource(n *netctl.Network, network string) error {
	wanted, _ := os.Stat(network) // nil if network is a name and not a path
	is, _ := os.Stat(n.Source())
	if wanted == nil || !strings.ContainsRune(network, filepath.Separator) ||
		is != nil && os.SameFile(wanted, is) {
		return nil
	}
	return fmt.Errorf("%[1]s: another network named %s is up, from %s: `node net up %[1]s "+
		"--name NAME` starts this one, and `node in NAME:HOST` enters it", network, n.Name(),
		n.Source())
}

// hostsFile returns a hosts file with the names of a network's nodes.
func hostsFile(source string) (string, error) {
	f, err := readNetwork(source)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	for _, c := range f.configs() {
		names := c.Name
		if lower := strings.ToLower(c.Name); lower != c.Name {
			names += " " + lower
		}
		if len(c.DNS.Servers) > 0 { // its network has a DNS zone
			names += " " + c.Name + "." + cmp.Or(c.DNS.Zone, control.DefaultZone)
		}
		for _, a := range hostAddrs(c) {
			fmt.Fprintf(&b, "%v %s\n", a, names)
		}
	}
	return b.String(), nil
}

// hostAddrs returns a node's first address of each family.
func hostAddrs(c *lnx.Config) (list []netip.Addr) {
	for _, a := range c.HostAddrs() {
		if !slices.ContainsFunc(list, func(b netip.Addr) bool { return a.Is4() == b.Is4() }) {
			list = append(list, a)
		}
	}
	return list
}
