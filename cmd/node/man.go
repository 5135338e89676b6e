package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/repl"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "write the manual pages into a folder",
		Long: "Write a manual page for each command, and one for the shell, into DIR: node.1,\n" +
			"node-run.1, node-shell.1 and so on. If the program is called tidepool, they are\n" +
			"tidepool.1, tidepool-run.1 and so on. `man -l DIR/node.1` shows one.",
		Example: "  node man ~/.local/share/man/man1",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			pages := map[string]string{programName() + "-shell.1": shellPage()}
			manualPages(rootCommandAs(programName()), pages)
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			for name, text := range pages {
				path := filepath.Join(args[0], name)
				if err := files.Overwrite(path, []byte(text), 0o644); err != nil {
					return err
				}
			}
			_, err := fmt.Fprintf(c.ErrOrStderr(), "%s in %s\n", counted(len(pages), "page"),
				args[0])
			return err
		},
	}
}

func manualPages(c *cobra.Command, pages map[string]string) {
	if c.Hidden || c.Name() == "help" {
		return
	}
	pages[pageName(c)+".1"] = manualPage(c)
	for _, sub := range c.Commands() {
		manualPages(sub, pages)
	}
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(commandPath(c), " ", "-") }

// roff builds a page in roff (man(7)).
type roff struct{ strings.Builder }

// plain escapes roff syntax.
func plain(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	var b strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	return b.String()
}

func (r *roff) line(format string, args ...any) { fmt.Fprintf(r, format+"\n", args...) }

func (r *roff) title(name, section string) {
	r.line(`.TH "%s" "%s" "" "tidepool" "tidepool"`, plain(strings.ToUpper(name)), section)
}

// text writes paragraphs. Lines that start with blanks are not filled.
func (r *roff) text(text string) {
	asIs := false
	for line := range strings.SplitSeq(text, "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != asIs {
			asIs = indented
			r.line(map[bool]string{true: ".PP\n.nf", false: ".fi\n.PP"}[asIs])
		}
		if line == "" {
			r.line(".PP")
			continue
		}
		r.line("%s", plain(line))
	}
	if asIs {
		r.line(".fi")
	}
}

func (r *roff) flag(f *pflag.Flag) {
	value, about := pflag.UnquoteUsage(f)
	if f.Value.Type() == "count" {
		value = ""
	}
	name := `\fB\-\-` + plain(f.Name) + `\fR`
	if f.Shorthand != "" {
		name = `\fB\-` + f.Shorthand + `\fR, ` + name
	}
	if value != "" {
		name += ` \fI` + plain(value) + `\fR`
	}
	switch f.DefValue {
	case defaultState(): // depends on this machine
		about += " (default $XDG_RUNTIME_DIR/tidepool)"
	case "", "0", "false", "[]", "0s":
	default:
		about += " (default " + f.DefValue + ")"
	}
	r.line(".TP\n%s", name)
	r.text(about)
}

func manualPage(c *cobra.Command) string {
	var r roff
	name := pageName(c)
	r.title(name, "1")
	r.line(".SH NAME\n%s \\- %s", plain(name), plain(c.Short))
	r.line(".SH SYNOPSIS\n.B %s", plain(c.UseLine()))
	r.line(".SH DESCRIPTION")
	r.text(cmp.Or(c.Long, strings.ToUpper(c.Short[:1])+c.Short[1:]+"."))
	flags := 0
	c.Flags().VisitAll(func(f *pflag.Flag) { flags++ })
	if c.HasAvailableFlags() || flags > 0 {
		r.line(".SH OPTIONS")
		c.NonInheritedFlags().VisitAll(r.flag)
		c.InheritedFlags().VisitAll(r.flag)
	}
	if c.HasAvailableSubCommands() {
		r.line(".SH COMMANDS")
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				r.line(".TP\n.BR %s (1)", plain(pageName(sub)))
				r.line("%s", plain(sub.Short))
			}
		}
	}
	if c.Example != "" {
		r.line(".SH EXAMPLES")
		r.text(c.Example)
	}
	r.line(".SH EXIT STATUS")
	r.text(statuses + ".")
	r.line(".SH ENVIRONMENT")
	for _, v := range environment {
		r.line(".TP\n.B %s", plain(v[0]))
		r.text(v[1])
	}
	r.line(".SH SEE ALSO")
	also := []string{programName() + "-shell(1)"}
	for p := c.Parent(); p != nil; p = p.Parent() {
		also = append(also, pageName(p)+"(1)")
	}
	r.line("%s", plain(strings.Join(also, ", ")))
	return r.String()
}

// environment lists the environment variables that the program uses.
var environment = [][2]string{
	{"NO_COLOR", "If set, output has no colors."},
	{"LC_ALL, LC_CTYPE, LANG", "Whether output may contain characters beyond ASCII."},
	{"XDG_RUNTIME_DIR", "Folder of the sockets and logs of networks (in tidepool below it)."},
	{"XDG_STATE_HOME", "Folder for the history of the shell (in tidepool below it)."},
	{"TIDEPOOL_TOKEN", "The token of a node at an http address."},
}

func shellPage() string {
	var r roff
	r.title(programName()+"-shell", "1")
	r.line(".SH NAME\n%s \\- the commands of a node's shell", plain(programName()+"-shell"))
	r.line(".SH DESCRIPTION")
	r.text(namedAs(programName(), "These are the commands of a shell at a node (node run, "+
		"node attach), of its\nscripts, and of node ctl.") +
		" Ctrl-C stops a command, Ctrl-D leaves; Tab completes.\n" +
		"A line that begins with # is a comment. Quotes join words.")
	group := ""
	for _, e := range repl.Manual() {
		if e.Group != group {
			group = e.Group
			r.line(".SH %s", plain(strings.ToUpper(group)))
		}
		name, rest, _ := strings.Cut(e.Use, " ")
		r.line(".SS \\fB%s\\fR %s", plain(name), plain(rest))
		if len(e.Aliases) > 0 {
			r.text("Also: " + strings.Join(e.Aliases, ", ") + ".\n")
		}
		r.text(e.Text)
		for _, f := range e.Flags {
			r.flag(f)
		}
	}
	r.line(".SH EXIT STATUS")
	r.text(namedAs(programName(), "For scripts and node ctl: ") + statuses + ".")
	also := strings.ReplaceAll("node(1), node-ctl(1), node-attach(1)", treeName, programName())
	r.line(".SH SEE ALSO\n%s", plain(also))
	return r.String()
}
