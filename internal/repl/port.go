package repl

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// transport is the common part of the commands for transports over UDP. Flow is the type of a flow
// in a list.
type transport[Flow any] struct {
	name, short, long string
	list              control.Request[[]Flow]
	print             func([]Flow) string
	port              func(*Flow) uint16
	end               func(port uint16) control.Request[control.Nothing] // closes a port
}

// overUDP returns the command of a transport over UDP. Without a subcommand it lists the flows. Its
// subcommands are own, and one that closes a port.
func overUDP[Flow any](e *env, t *transport[Flow], own ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: t.name, Short: t.short, Long: t.long,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return notAVerb(c, args[0])
			}
			return show(e, c, t.list, t.print)
		},
	}
	c.AddCommand(own...)
	c.AddCommand(t.closePort(e))
	return e.jsonFlag(c)
}

func (t *transport[Flow]) closePort(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "close PORT",
		Short: "close the sockets of a port",
		Args:  positional,

		ValidArgsFunction: at(func(ctx context.Context, _ string) []string {
			return listWords(ctx, e, t.list,
				func(f *Flow) string { return strconv.Itoa(int(t.port(f))) })
		}),
		RunE: func(c *cobra.Command, args []string) error {
			return e.done(c, control.Order(c.Context(), e.op, t.end(portOf(args[0]))))
		},
	}
}
