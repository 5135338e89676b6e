package repl

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Entry describes a command of the shell for the manual.
type Entry struct {
	Group   string
	Use     string   // the name with its arguments
	Aliases []string // other names of the command
	Text    string
	Flags   []*pflag.Flag // flags, sorted by name
}

// Manual returns every command of the shell, by group.
func Manual() (list []Entry) {
	s := newShell(Config{}, control.Node{}, &screen{})
	root := s.tree()
	for _, g := range root.Groups() {
		for _, c := range root.Commands() {
			if c.GroupID == g.ID {
				list = append(list, entry(g.Title, c))
			}
		}
	}
	return list
}

func entry(group string, c *cobra.Command) Entry {
	e := Entry{Group: group, Use: nameOf(c), Aliases: c.Aliases, Text: longText(c)}
	if rest := strings.TrimPrefix(c.Use, c.Name()); rest != "" {
		e.Use += rest
	}
	if c.HasAvailableSubCommands() {
		e.Use = useLine(c)
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			e.Flags = append(e.Flags, f)
		}
	})
	for _, sub := range c.Commands() {
		inner := entry(group, sub)
		e.Text += "\n\n" + inner.Use + ": " + inner.Text
		e.Flags = append(e.Flags, inner.Flags...)
	}
	return e
}

// Described is a command in the output of `help --json`.
type Described struct {
	Name    string   `json:"name"`
	Group   string   `json:"group"`
	Use     string   `json:"use"` // the name with its arguments and flags
	Aliases []string `json:"aliases"`
	About   string   `json:"about"`
}

func entries(commands []*cobra.Command) []Described {
	list := make([]Described, 0, len(commands))
	for _, c := range commands {
		list = append(list, Described{
			Name: c.Name(), Group: c.GroupID, Use: useLine(c), About: c.Short,
			Aliases: append([]string{}, c.Aliases...),
		})
	}
	return list
}
