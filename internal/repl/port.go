package repl

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// transport is the common part of the commands of transports over UDP. Flow is the type of a listed
// flow.
type transport[Flow any] struct {
	name, short, long string
	list              control.Request[[]Flow]
	print             func([]Flow) string
	port              func(*Flow) uint16
	end               func(context.Context, uint16) error // closes a port
}

// overUDP is the command of a transport over UDP. Alone it lists the flows. Its subcommands are
// own, and one that closes a port.
func overUDP[Flow any](e *env, t *transport[Flow], own ...*cobra.Command) *cobra.Command {
	var words []string
	for _, c := range own {
		words = append(words, c.Name())
	}
	words = append(words, "close")
	c := &cobra.Command{
		Use: t.name, Short: t.short, Long: t.long,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return wrong(c, "%q must be one of %s%s", args[0], strings.Join(words, ", "),
					near(c, args[0]))
			}
			list, err := ask(e, c, t.list)
			if err != nil {
				return err
			}
			return e.answer(c, list, t.print(list))
		},
	}
	c.AddCommand(own...)
	c.AddCommand(t.closePort(e))
	return e.jsonFlag(c)
}

// closePort is the command that closes a port.
func (t *transport[Flow]) closePort(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "close PORT",
		Short: "close the sockets of a port",
		Args:  positional,

		ValidArgsFunction: at(func(ctx context.Context, _ string) []string {
			list, err := control.Ask(ctx, e.op, t.list)
			if err != nil {
				return nil
			}
			var words []string
			for i := range list {
				word := strconv.Itoa(int(t.port(&list[i])))
				if !slices.Contains(words, word) {
					words = append(words, word)
				}
			}
			return words
		}),
		RunE: func(c *cobra.Command, args []string) error {
			port, err := parsePort(c, args[0])
			if err != nil {
				return err
			}
			return e.done(c, t.end(c.Context(), port))
		},
	}
}
