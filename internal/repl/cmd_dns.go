package repl

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// isName reports whether a word is a name and not an address. An IPv4 address has no letter, and an
// IPv6 address has a colon (RFC 1123 §2.1).
func isName(word string) bool {
	return !strings.ContainsAny(word, ":[]/%") && strings.ContainsFunc(word, unicode.IsLetter)
}

// host parses the address of a host, or looks up its name. The flags --ipv4 and --ipv6 require the
// family.
func (e *env) host(c *cobra.Command, word string) (netip.Addr, error) {
	four, six := c.Flags().Changed("ipv4"), c.Flags().Changed("ipv6")
	a, err := readAddr(word)
	switch {
	case err != nil && isName(word):
		return e.lookup(c, word, four, six)
	case err != nil && !strings.ContainsAny(word, ":["):
		return a, wrong(c, "%s: no such host: must be a name, or an address like 10.1.0.2 or "+
			"2001:db8::2 (`neighbors` and `routes` show some)", printable(word))
	case err != nil:
		return a, wrong(c, "%w", err)
	case four && !a.Is4():
		return a, wrong(c, "-4: %v is an IPv6 address", a)
	case six && !a.Is6():
		return a, wrong(c, "-6: %v is an IPv4 address", a)
	}
	return a, nil
}

// lookup resolves a name and returns the first address.
func (e *env) lookup(c *cobra.Command, name string, four, six bool) (netip.Addr, error) {
	req := control.Resolve{Name: name}
	switch {
	case four:
		req.Family = 4
	case six:
		req.Family = 6
	}
	found, err := control.Ask(c.Context(), e.op, req)
	switch {
	case errors.Is(err, control.ErrNoSuchName):
		return netip.Addr{}, &usageError{cause: fmt.Errorf("%s: %w; give a name of the "+
			"network, or an address like 10.1.0.2 or 2001:db8::2", nameOf(c), err)}
	case err != nil:
		return netip.Addr{}, failed(c, err)
	}
	return found.Addrs[0], nil
}

// hostPort parses HOST:PORT. HOST is an address or a name.
func (e *env) hostPort(c *cobra.Command, word string) (netip.AddrPort, error) {
	to, err := netip.ParseAddrPort(word)
	host, port, splits := net.SplitHostPort(word)
	switch {
	case err == nil && !to.Addr().Is4In6():
		return to, nil
	case splits != nil || !isName(host):
		return to, wrong(c, "%q is neither ADDR:PORT nor, for IPv6, [ADDR]:PORT", word)
	}
	n, err := parsePort(c, port)
	if err != nil {
		return to, err
	}
	a, err := e.host(c, host)
	return netip.AddrPortFrom(a, n), err
}

// everyName makes commands accept a name wherever their usage lines have ADDR. It replaces names by
// addresses before the commands check their arguments. The exceptions are commands that print the
// name, and splice, whose ADDR is the node's own.
func everyName(e *env, c *cobra.Command) {
	for _, sub := range c.Commands() {
		everyName(e, sub)
	}
	_, list := cut(c.Use)
	names, check := strings.Fields(list), c.Args
	if check == nil || c.DisableFlagParsing || !slices.Contains(names, "ADDR") ||
		slices.Contains([]string{"ping", "traceroute", "echo", "splice"}, c.Name()) {
		return
	}
	c.Args = func(c *cobra.Command, args []string) error {
		for i, name := range names {
			if name == "ADDR" && i < len(args) && isName(args[i]) {
				a, err := e.lookup(c, args[i], false, false)
				if err != nil {
					return err
				}
				args[i] = a.String()
			}
		}
		return check(c, args)
	}
}

func hostCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:   "host NAME",
		Short: "look up a name, or an address",
		Long: "Print the addresses of a host's NAME, or the names of an address, from the\n" +
			"DNS. Other commands accept names, too: `ping C`. A name without a dot\n" +
			"belongs to the network's zone.",
		RunE: func(c *cobra.Command, args []string) error {
			req := control.Resolve{Name: strings.Trim(args[0], "[]")}
			return show(e, c, req, func(r control.Resolved) string {
				var b strings.Builder
				for _, a := range r.Addrs {
					kind := "address"
					if a.Is6() {
						kind = "IPv6 address"
					}
					fmt.Fprintf(&b, "%s has %s %v\n", printable(r.Name), kind, a)
				}
				for _, name := range r.Names {
					fmt.Fprintf(&b, "%s is %s\n", printable(r.Name), printable(name))
				}
				return b.String()
			})
		},
	})
}

func dnsCommand(e *env) *cobra.Command {
	return verbsOf(&cobra.Command{
		Use:   "dns",
		Short: "show and serve names, choose a DNS server",
		Long: "`dns show` prints the node's DNS servers, the names that it serves, and\n" +
			"counters. `dns name C 10.1.0.2` adds a name with its addresses: a node with\n" +
			"names serves them on port 53. `dns server 10.0.0.1` makes the node use the DNS\n" +
			"server at that address; several servers are tried in order. `dns off` removes\n" +
			"names and servers. An .lnx file accepts the same `dns name` and `dns server`\n" +
			"lines.",
	},
		e.jsonFlag(&cobra.Command{
			Use: "show", Short: "print servers, names and counters", Args: positional,
			RunE: func(c *cobra.Command, _ []string) error {
				return show(e, c, control.DNS{}, printDNS)
			},
		}),
		dnsVerb(e, "name NAME ADDR...", "serve a name", addName),
		dnsVerb(e, "server ADDR...", "resolve names by these servers", chooseServers),
		dnsVerb(e, "off", "serve no names, and ask no server",
			func(_ *cobra.Command, d *control.DNSConfig, _ []string) error {
				d.Servers, d.Names = nil, nil
				return nil
			}))
}

func dnsVerb(
	e *env, use, short string, change func(*cobra.Command, *control.DNSConfig, []string) error,
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			now, err := ask(e, c, control.DNS{})
			if err != nil {
				return err
			}
			if err := change(c, &now.DNSConfig, args); err != nil {
				return err
			}
			return show(e, c, control.SetDNS(now.DNSConfig), printDNS)
		},
	}
}

func addName(c *cobra.Command, d *control.DNSConfig, args []string) error {
	if len(args) < 2 {
		return wrong(c, "expected NAME and its addresses")
	}
	addrs, err := parseAddrs(c, args[1:])
	if err != nil {
		return err
	}
	host := control.HostName{Name: args[0], Addrs: addrs}
	d.Names = slices.DeleteFunc(d.Names, func(n control.HostName) bool {
		return strings.EqualFold(n.Name, host.Name)
	})
	d.Names = append(d.Names, host)
	return nil
}

func chooseServers(c *cobra.Command, d *control.DNSConfig, args []string) (err error) {
	if len(args) == 0 {
		return wrong(c, "ADDR is missing")
	}
	d.Servers, err = parseAddrs(c, args)
	return err
}

func parseAddrs(c *cobra.Command, words []string) (list []netip.Addr, err error) {
	for _, word := range words {
		a, err := parseAddr(c, word)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

func printDNS(d control.DNSState) string {
	var b strings.Builder
	servers := "none"
	if len(d.Servers) > 0 {
		servers = joinAddrs(d.Servers)
	}
	fmt.Fprintf(&b, "Servers: %s; zone %s\n", servers, printable(d.Zone))
	fmt.Fprintf(&b, "Resolver: %s%s\n", counted(d.Asked, "request"),
		printCounts(", ignored", d.Ignored))
	if len(d.Names) == 0 {
		b.WriteString("This node serves no names.\n")
		return b.String()
	}
	fmt.Fprintf(&b, "Server on port 53: %s%s\n", counted(d.Queries, "request"),
		printCounts(", answered", d.Answers))
	for _, n := range d.Names {
		fmt.Fprintf(&b, "  %-15s %s\n", printable(n.Name), joinAddrs(n.Addrs))
	}
	return b.String()
}

func joinAddrs(list []netip.Addr) string {
	words := make([]string, len(list))
	for i, a := range list {
		words[i] = a.String()
	}
	return strings.Join(words, ", ")
}

// printCounts formats counters after a title, such as ", ignored: wrong ID 2".
func printCounts(title string, counts []control.DNSCount) string {
	var parts []string
	for _, c := range counts {
		parts = append(parts, fmt.Sprintf("%s %d", printable(c.What), c.Count))
	}
	if len(parts) == 0 {
		return ""
	}
	return title + ": " + strings.Join(parts, ", ")
}
