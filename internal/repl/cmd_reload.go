package repl

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

func reloadCommand(e *env) *cobra.Command {
	var try bool
	c := &cobra.Command{
		Use:   "reload",
		Short: "reload the node's file",
		Long: "Reload the node's .lnx file: interfaces, neighbors, links, routes, RIP, port\n" +
			"forwards and settings change. Connections stay open, except those whose local\n" +
			"address is removed. A file with errors changes nothing, and neither does one\n" +
			"that needs a new process, such as for another routing protocol. --try only\n" +
			"prints the changes.",
		RunE: func(c *cobra.Command, _ []string) error {
			done, err := ask(e, c, control.Reload{Try: try})
			if err != nil {
				return err
			}
			lines := append([]string{}, done.Changes...)
			for _, text := range done.Restart {
				lines = append(lines, text+": needs a restart of the node")
			}
			for _, text := range done.Ended {
				lines = append(lines, "closed, because its address was removed: "+text)
			}
			if len(lines) == 0 {
				lines = append(lines, "no changes")
			}
			for i := range lines {
				lines[i] = printable(lines[i])
			}
			return e.answer(c, done, strings.Join(lines, "\n"))
		},
	}
	c.Flags().BoolVar(&try, "try", false, "print the changes, and apply none")
	return e.jsonFlag(c)
}
