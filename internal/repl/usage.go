package repl

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

type usageError struct {
	cause error
	use   string // the command's usage line
}

func (e *usageError) Error() string   { return e.cause.Error() }
func (e *usageError) Unwrap() []error { return []error{e.cause, control.ErrUsage} }

func wrong(c *cobra.Command, format string, args ...any) error {
	return &usageError{
		cause: fmt.Errorf("%s: "+format, append([]any{nameOf(c)}, args...)...),
		use:   useLine(c),
	}
}

// flagError converts pflag's error to a usage error.
func flagError(c *cobra.Command, err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return wrong(c, "%w", err)
	}
	f := bad.GetFlag()
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand
	}
	if must, ok := errors.AsType[ValueError](bad); ok {
		return wrong(c, "%s %s: %w", name, printable(bad.GetValue()), must)
	}
	want, about := pflag.UnquoteUsage(f)
	if kind := f.Value.Type(); kind == "int" || kind == "int64" {
		want = "a whole number"
	} else if want == "SECONDS" {
		want = "a number of seconds, such as 0.5"
	}
	what := printable(bad.GetValue())
	if errors.Is(bad, strconv.ErrRange) {
		what += " is out of range"
	}
	return wrong(c, "%s %s: must be %s; %s: %s", name, what, want, name,
		strings.ReplaceAll(about, "\n", " "))
}

func nameOf(c *cobra.Command) string {
	return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
}

func useLine(c *cobra.Command) string {
	use := nameOf(c) + strings.TrimPrefix(c.Use, c.Name())
	if c.HasAvailableSubCommands() {
		var forms []string
		if own := strings.TrimPrefix(c.Use, c.Name()); own != "" {
			forms = append(forms, strings.TrimSpace(own))
		}
		for _, sub := range c.Commands() {
			forms = append(forms, sub.Use)
		}
		return nameOf(c) + " " + strings.Join(forms, " | ")
	}
	if c.DisableFlagParsing {
		return use
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, quiet := f.Annotations[inHelpAlone]; quiet || f.Name == "help" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand
		}
		if value, _ := pflag.UnquoteUsage(f); value != "" && f.Value.Type() != "count" {
			name += " " + value
		}
		use += " [" + name + "]"
	})
	return use
}

// positional checks the arguments against the usage line: how many there are, and the syntax of
// those that have a name in syntaxes.
func positional(c *cobra.Command, args []string) error {
	if err := argumentCount(c, args); err != nil {
		return err
	}
	return argumentSyntax(c, args)
}

// argumentCount checks the number of arguments. NAME is required, [NAME] is optional.
func argumentCount(c *cobra.Command, args []string) error {
	_, list := cut(c.Use)
	names := strings.Fields(list)
	for i, name := range names {
		if i >= len(args) && name[0] != '[' {
			return wrong(c, "%s is missing", name)
		}
		if i < len(args) && args[i] == "" && name != "VALUE" {
			return wrong(c, "%s is empty", strings.Trim(name, "[]"))
		}
	}
	if len(args) > len(names) {
		return wrong(c, "unexpected argument: %q", strings.Join(args[len(names):], " "))
	}
	return nil
}

// syntaxes contains a check for arguments by their name in usage lines.
var syntaxes = map[string]func(*cobra.Command, string) error{
	"ADDR": syntax(parseAddr), "HOST-ADDR": syntax(parseAddr), "PORT": syntax(parsePort),
	"SID": syntax(parseSID),
}

func syntax[T any](
	parse func(*cobra.Command, string) (T, error),
) func(*cobra.Command, string) error {
	return func(c *cobra.Command, word string) error {
		_, err := parse(c, word)
		return err
	}
}

func argumentSyntax(c *cobra.Command, args []string) error {
	_, list := cut(c.Use)
	for i, name := range strings.Fields(list) {
		if check := syntaxes[strings.Trim(name, "[]")]; check != nil && i < len(args) {
			if err := check(c, args[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// verbsOf turns c into a command that has only subcommands.
func verbsOf(c *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	c.AddCommand(verbs...)
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return notAVerb(c, args[0])
		}
		return wrong(c, "%s is missing", diagnostic.OneOf(verbNames(c)))
	}
	return c
}

// notAVerb returns the error for a word that is not a subcommand.
func notAVerb(c *cobra.Command, word string) error {
	return wrong(c, "%q: must be %s%s", word, diagnostic.OneOf(verbNames(c)), near(c, word))
}

func verbNames(c *cobra.Command) (names []string) {
	for _, verb := range c.Commands() {
		names = append(names, verb.Name())
	}
	return names
}

func unknown(root *cobra.Command, word string) error {
	text := fmt.Sprintf("no command %q", word)
	switch meant := near(root, word); {
	case kin[word] != "":
		text += "; use `" + kin[word] + "`"
	case meant != "":
		text += meant
	default:
		text += "; `help` lists all commands"
	}
	return &usageError{cause: fmt.Errorf("%s", text)}
}

func near(c *cobra.Command, word string) string {
	var names []string
	for _, sub := range c.Commands() {
		names = append(append(names, sub.Name()), sub.Aliases...)
	}
	return didYouMean(word, names)
}

func didYouMean(word string, names []string) string {
	if near := diagnostic.Near(word, names); len(near) > 0 {
		return "; did you mean " + diagnostic.OneOf(near) + "?"
	}
	return ""
}

// kin maps commands of other programs to the commands here that do the same.
var kin = map[string]string{
	"ip": "interfaces`, `routes`, `neighbors", "ifconfig": "interfaces", "ss": "sockets",
	"netstat": "sockets", "arp": "neighbors", "tracepath": "traceroute", "mtr": "traceroute",
	"tcpdump": "capture", "tshark": "capture", "wireshark": "capture", "iperf": "perf",
	"iperf3": "perf", "curl": "http get", "wget": "http get", "nc": "connect", "tc": "impair",
	"netem": "impair", "listen": "accept", "kill": "cancel", "stop": "cancel", "jobs": "transfers",
	"lcc": "lc", "unpublish": "doors close", "unexpose": "doors close",
	"dig": "host", "nslookup": "host", "resolvectl": "dns show",
	"fg": "wait", "man": "help", "bye": "quit", "logout": "quit",
}

// The following functions parse arguments. Their errors say which value is expected.

func parseAddr(c *cobra.Command, word string) (netip.Addr, error) {
	a, err := readAddr(word)
	if err != nil {
		return a, wrong(c, "%w", err)
	}
	return a, nil
}

// readAddr parses an address. An IPv6 address may be in brackets.
func readAddr(word string) (netip.Addr, error) {
	inner, open := strings.CutPrefix(word, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	a, err := netip.ParseAddr(inner)
	switch {
	case err == nil && a.Is4In6():
		return a, fmt.Errorf("%q is an IPv4-mapped address: must be %v", word, a.Unmap())
	case open != closed:
		return a, fmt.Errorf("%q is not an IP address: must have both brackets, or none", word)
	case err != nil || open && a.Is4():
		return a, fmt.Errorf("%q is not an IP address", word)
	}
	return a, nil
}

func parsePort(c *cobra.Command, word string) (uint16, error) {
	n, err := strconv.ParseUint(word, 10, 16)
	if err != nil || n == 0 {
		return 0, wrong(c, "%q is not a port (1 to 65535)", word)
	}
	return uint16(n), nil
}

// addrOf, portOf and sidOf convert arguments that positional has already checked.
func addrOf(word string) netip.Addr { return netip.MustParseAddr(strings.Trim(word, "[]")) }
func portOf(word string) uint16     { return uint16(sidOf(word)) }

func sidOf(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		panic("BUG: repl: " + err.Error())
	}
	return n
}

func parseSID(c *cobra.Command, word string) (int, error) {
	n, err := strconv.ParseUint(word, 10, 31)
	if err != nil {
		return 0, wrong(c, "%q is not a socket number", word)
	}
	return int(n), nil
}

func parseCount(c *cobra.Command, word string, least, most int) (int, error) {
	n, err := strconv.Atoi(word)
	if err != nil || n < least || n > most {
		return 0, wrong(c, "%q is not a number from %d to %d", word, least, most)
	}
	return n, nil
}
