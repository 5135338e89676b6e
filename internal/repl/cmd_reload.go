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
		Short: "read the node's file again",
		Long: "Read the node's .lnx file again and be as it says now: interfaces, neighbors,\n" +
			"links, routes, RIP, doors and settings change, and connections go on, but those\n" +
			"whose local address is no more. A file with mistakes changes nothing, nor does\n" +
			"one that asks for what only a new node can be: another routing, say. --try only\n" +
			"tells what would be done.",
		RunE: func(c *cobra.Command, _ []string) error {
			done, err := ask(e, c, control.Reload{Try: try})
			if err != nil {
				return err
			}
			lines := append([]string{}, done.Changes...)
			for _, text := range done.Restart {
				lines = append(lines, text+": only a new node can be that")
			}
			for _, text := range done.Ended {
				lines = append(lines, "ended, for its address is no more: "+text)
			}
			if len(lines) == 0 {
				lines = append(lines, "nothing has changed")
			}
			for i := range lines {
				lines[i] = printable(lines[i])
			}
			return e.answer(c, done, strings.Join(lines, "\n"))
		},
	}
	c.Flags().BoolVar(&try, "try", false, "tell what would be done")
	return e.jsonFlag(c)
}
