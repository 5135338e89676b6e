package repl

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// natTypes are the types of mapping and filtering.
var natTypes = []string{"endpoint-independent", "address-dependent", "symmetric"}

func natCommand(e *env) *cobra.Command {
	c := verbsOf(&cobra.Command{
		Use:   "nat",
		Short: "list or set up address translation",
		Long: "Without arguments, list the NATs of this router and their sessions: protocol,\n" +
			"inside address, outside port, remote address, state, seconds until the\n" +
			"timeout, and packets in each direction. For ICMP, ports are identifiers.\n\n" +
			"`nat on IFACE` makes IFACE the outside of a NAT: the inside hosts share its IPv4\n" +
			"address when the router forwards their packets over it. TYPE says whether remote\n" +
			"hosts share a mapping, and which of them may send packets in through it:\n\n" +
			"endpoint-independent  one mapping for all remote hosts, open to all; the default\n" +
			"address-dependent     a mapping for each remote address, open to that address\n" +
			"symmetric             a mapping for each remote address and port, open to those\n\n" +
			"`mapping TYPE` sets only the first property, `filtering TYPE` only the second.\n" +
			"KEYs set timeouts, here with their defaults: `udp 5m`, `established 2h4m` and\n" +
			"`transitory 4m` for TCP, and `icmp 1m`. `sessions N` and `per-host N` limit the\n" +
			"number of sessions. `nat forward` forwards an outside port to an inside host;\n" +
			"`nat off` with a protocol and a port removes only such a port forward.\n" +
			"`nat probe SERVER` finds out which kinds of NAT are on the path to SERVER, where\n" +
			"`nat serve` must run. `nat clear` removes all sessions.",
		Example: "nat on if1 symmetric\nnat forward if1 tcp 8080 10.0.0.2:80",
	}, natVerb(e, "on IFACE [TYPE] [KEY VALUE ...]", "translate addresses at an interface",
		func(args []string) control.SetNAT {
			return control.SetNAT{Iface: args[0], On: true, Args: args[1:]}
		}), natVerb(e, "forward IFACE {tcp|udp} PORT ADDR:PORT", "forward an outside port",
		func(args []string) control.SetNAT {
			return control.SetNAT{Iface: args[0], Forward: append([]string{}, args[1:]...)}
		}), natVerb(e, "off IFACE [{tcp|udp} PORT]", "remove the NAT, or a port forward",
		func(args []string) control.SetNAT {
			return control.SetNAT{Iface: args[0], Unforward: args[1:]}
		}), natClear(e), natServe(e), natProbe(e))
	verbs := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return verbs(c, args)
		}
		return show(e, c, control.NATs{}, printNATs)
	}
	return e.jsonFlag(c)
}

// natVerb is a subcommand that sends a request about an interface.
func natVerb(
	e *env, use, short string, request func(args []string) control.SetNAT,
) *cobra.Command {
	verb, _, _ := strings.Cut(use, " ")
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ArbitraryArgs,
		ValidArgsFunction: at(e.interfaceNames, words(natTypes...)),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return wrong(c, "IFACE is missing")
			}
			if verb == "forward" && len(args) != 4 {
				return wrong(c, "expected IFACE {tcp|udp} PORT ADDR:PORT")
			}
			return e.done(c, control.Order(c.Context(), e.op, request(args)))
		},
	}
}

func natClear(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:               "clear [IFACE]",
		Short:             "remove all sessions",
		Args:              positional,
		ValidArgsFunction: at(e.interfaceNames),
		RunE: func(c *cobra.Command, args []string) error {
			var req control.ClearNAT
			if len(args) > 0 {
				req.Iface = args[0]
			}
			return show(e, c, req, func(done control.NATCleared) string {
				return "Removed " + counted(uint64(done.Sessions), "session")
			})
		},
	})
}

func natServe(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:   "serve [PORT]",
		Short: "answer NAT probes (STUN)",
		Long: "Answer the probes of `nat probe` with STUN (RFC 5780), at two IPv4 addresses of\n" +
			"this node, on PORT (default 3478) and the next port. If you close one of the\n" +
			"four sockets, the server stops.",
		Args: positional,
		RunE: func(c *cobra.Command, args []string) error {
			var req control.NATServe
			if len(args) > 0 {
				req.Port = portOf(args[0])
			}
			return show(e, c, req, func(done control.NATServed) string {
				return "Answering probes at " + strings.Trim(fmt.Sprint(done.At), "[]")
			})
		},
	})
}

func natProbe(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:   "probe SERVER[:PORT]",
		Short: "test how the NATs on the path to a server behave",
		Long: "Find out how the NATs between this node and a server behave (RFC 5780): whether\n" +
			"mapping and filtering depend on the remote address and port. The server runs\n" +
			"`nat serve`. A test of the filtering takes 1.5 s if no answer arrives. If the\n" +
			"server does not answer at all, the command fails after 3 s.",
		Args:              positional,
		ValidArgsFunction: at(e.neighborAddrs),
		RunE: func(c *cobra.Command, args []string) error {
			host := args[0]
			if !strings.Contains(host, ":") {
				host += ":3478"
			}
			to, err := e.hostPort(c, host)
			if err != nil {
				return err
			}
			return show(e, c, control.NATProbe{Server: to}, func(done control.NATProbed) string {
				return probedText(&done)
			})
		},
	})
}

func probedText(p *control.NATProbed) string {
	text := fmt.Sprintf("%v appears as %v: ", p.Local, p.Outside)
	switch {
	case p.NAT:
		text += "a NAT"
	case p.Filtering == "" || p.Filtering == natTypes[0]:
		text += "no NAT"
	default:
		text += "no NAT, but a filter"
	}
	if p.Mapping == "" {
		return text + "; the server has only one address"
	}
	return text + fmt.Sprintf("\nmapping   %s\nfiltering %s", p.Mapping, p.Filtering)
}

func printNATs(list []control.NAT) string {
	var b strings.Builder
	if len(list) == 0 {
		return "no NAT; `nat on IFACE` translates at an interface\n"
	}
	for i := range list {
		n := &list[i]
		fmt.Fprintf(&b, "%s: outside %v, mapping %s, filtering %s\n", n.Iface, n.Outside,
			n.Mapping, n.Filtering)
		for _, f := range n.Forwards {
			fmt.Fprintf(&b, "  forward %s\n", f)
		}
		fmt.Fprintf(&b, "  %d of %d sessions (%d for a host), %s; packets: %d out, %d in, "+
			"%d filtered, %d refused\n", n.Total, n.MaxSessions, n.MaxPerHost,
			counted(uint64(n.Mappings), "mapping"), n.Out, n.In, n.Filtered, n.Refused)
		b.WriteString(natTable(n.Sessions))
		if more := n.Total - len(n.Sessions); more > 0 {
			fmt.Fprintf(&b, "  and %d more\n", more)
		}
	}
	return b.String()
}

func natTable(list []control.NATSession) string {
	if len(list) == 0 {
		return ""
	}
	const head = "<Prot|            Inside|           Outside|            Remote|      State|" +
		"  Left|   Out|    In"
	return table(head, list, func(s *control.NATSession) []string {
		left := time.Duration(s.Left * float64(time.Second)).Round(time.Second)
		return []string{
			s.Protocol, s.Inside, s.Outside, s.Remote, s.State, left.String(), number(s.Out),
			number(s.In),
		}
	})
}
